"""The claims that can be disputed, and the first position of a dispute (docs/spec/dispute.md#moves, `start`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pol.commitments.program_hash import HEADER_SIZE, header_hash
from pol.dispute.agreed_facts import Replayed, Summed
from pol.dispute.position import HASH_BITS, Level, Position, Side
from pol.errors import ProtocolError

VERSION = (1).to_bytes(4, "big")


@dataclass(frozen=True)
class ProgramHeader:
    """Counts and trees of a step program."""

    nodes: int
    slots: int
    constants: int
    nodes_tree: bytes
    slots_tree: bytes
    constants_tree: bytes

    @classmethod
    def decode(cls, data: bytes, program: bytes) -> ProgramHeader:
        """Read a header that must hash to ``program``. Raises ProtocolError: it is not that program's header."""
        if len(data) != HEADER_SIZE or header_hash(data) != program:
            raise ProtocolError("the header isn't that of the task's program; build it from the task's program.bin")
        if data[:4] != VERSION:
            raise ProtocolError(f"a program header of another version: {data[:4].hex()}")
        counts = [int.from_bytes(data[i : i + 4], "big") for i in (4, 8, 12)]
        if 0 in counts[:2]:
            raise ProtocolError("a program without nodes or slots")
        return cls(counts[0], counts[1], counts[2], data[16:48], data[48:80], data[80:112])


@dataclass(frozen=True)
class ReplayClaim:
    """``program`` on ``constants`` leads from the state root ``start`` to ``end`` in ``steps`` steps."""

    id: bytes
    program: bytes
    constants: bytes
    first_step: int
    steps: int
    start: bytes
    end: bytes

    @property
    def claimed(self) -> bytes:
        """The claimed value, from which the challenger's version must differ."""
        return self.end

    def first(self, header: bytes, bits: int = HASH_BITS) -> Position:
        """The position at which the challenger opens: all steps; ``header`` is the program's."""
        facts, nodes = Replayed(self.id, self.program, self.constants), ProgramHeader.decode(header, self.program).nodes
        return Position(
            Level.STEPS,
            Side.CHALLENGER,
            facts,
            count=nodes,
            lo=self.first_step,
            hi=self.first_step + self.steps,
            agreed=self.start,
            bits=bits,
        )


@dataclass(frozen=True)
class ReceiptClaim:
    """From the state root ``before`` on, the nodes of ``step`` that ``seed`` draws have outputs of this ``receipt``.

    `pol.dispute.receipt_start` says where a dispute about it begins.
    """

    id: bytes
    program: bytes
    constants: bytes
    step: int
    before: bytes
    receipt: bytes
    seed: bytes


@dataclass(frozen=True)
class SumClaim:
    """The distance of one component between the states ``x`` and ``y`` is ``sum``."""

    id: bytes
    program: bytes
    component: int
    x: bytes
    y: bytes
    sum: int

    @property
    def claimed(self) -> bytes:
        """The claimed value, from which the challenger's version must differ."""
        return self.sum.to_bytes(32, "big")

    def first(self, header: bytes, bits: int = HASH_BITS) -> Position:
        """The position at which the challenger opens: all slots; ``header`` is the program's."""
        facts = Summed(self.id, self.program, self.x, self.y, self.component)
        return Position(
            Level.SUM_SLOTS, Side.CHALLENGER, facts, hi=ProgramHeader.decode(header, self.program).slots, bits=bits
        )


DisputedClaim: TypeAlias = ReplayClaim | ReceiptClaim | SumClaim
