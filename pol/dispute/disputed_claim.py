"""The claims that can be disputed, and the first position of a dispute (docs/spec/dispute.md#moves, `start`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pol.dispute.agreed_facts import Replayed, Summed
from pol.dispute.position import HASH_BITS, Level, Position, Side
from pol.dispute.program_header import ProgramHeader


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
        """The position at which the challenger opens: all steps; ``header`` is the program's.

        Raises:
            ProtocolError: it is another program's header.
        """
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
        """The position at which the challenger opens: all slots; ``header`` is the program's.

        Raises:
            ProtocolError: it is another program's header.
        """
        facts = Summed(self.id, self.program, self.x, self.y, self.component)
        return Position(
            Level.SUM_SLOTS, Side.CHALLENGER, facts, hi=ProgramHeader.decode(header, self.program).slots, bits=bits
        )


DisputedClaim: TypeAlias = ReplayClaim | ReceiptClaim | SumClaim
