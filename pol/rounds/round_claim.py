"""A worker's signed claim, and the bound inputs that it starts from (docs/spec/rounds.md, "Claim")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from pol.commitments import merkle
from pol.commitments.tensor import ListTag, list_root
from pol.errors import ProtocolError
from pol.rounds.typed_message import message_digest

CLAIM_TYPE = (
    "RoundClaim(bytes32 plan,address worker,uint64 round,uint32 phase,uint32 part,bytes32 roster,bytes32 program,"
    "bytes32 constants,uint64 firstStep,uint64 steps,bytes32 start,bytes32 end,bytes32 sources)"
)
SOURCE_SIZE, END_SIZE = 68, 33
INITIAL = bytes(32)
"""Stands for a claim where a slot has an initial value of the plan."""


@dataclass(frozen=True)
class BoundSlot:
    """The source of one slot of a start: slot ``slot`` of the end of ``claim``, whose tensor root is ``root``.

    Without a claim (`INITIAL`), ``slot`` is the index of an initial value.
    """

    claim: bytes
    slot: int
    root: bytes

    def encode(self) -> bytes:
        """68 bytes."""
        return self.claim + self.slot.to_bytes(4, "big") + self.root


def encode_sources(sources: Sequence[BoundSlot]) -> bytes:
    """The object that holds the sources of a claim."""
    return b"".join(source.encode() for source in sources)


def decode_sources(data: bytes) -> list[BoundSlot]:
    """The sources in an object. Raises ProtocolError: it isn't a whole number of sources, at least one."""
    if not data or len(data) % SOURCE_SIZE:
        raise ProtocolError(f"{len(data)} bytes aren't sources of a claim: each has {SOURCE_SIZE}")
    pieces = (data[at : at + SOURCE_SIZE] for at in range(0, len(data), SOURCE_SIZE))
    return [BoundSlot(piece[:32], int.from_bytes(piece[32:36], "big"), piece[36:]) for piece in pieces]


def sources_root(sources: Sequence[BoundSlot]) -> bytes:
    """The commitment to the sources of a claim."""
    return merkle.tree([merkle.leaf_hash(source.encode()) for source in sources])


def start_of(sources: Sequence[BoundSlot]) -> bytes:
    """The state root that follows from sources."""
    return list_root(ListTag.STATE, [source.root for source in sources])


@dataclass(frozen=True)
class EndSlot:
    """A slot of the end of a claim: its root, and whether the author's file holds it.

    If not, it is the tensor of its source, which the file of that claim or the plan's initial values hold.
    """

    root: bytes
    is_held: bool


def encode_end(slots: Sequence[EndSlot]) -> bytes:
    """The object that shows the end of a claim: 33 bytes a slot."""
    return b"".join(slot.root + bytes([slot.is_held]) for slot in slots)


def decode_end(data: bytes, end: bytes) -> list[EndSlot]:
    """The slots in an object, whose roots lead to the state root ``end``. Raises ProtocolError: they don't."""
    pieces = [data[at : at + END_SIZE] for at in range(0, len(data), END_SIZE)]
    if not pieces or len(data) % END_SIZE or any(piece[32] > 1 for piece in pieces):
        raise ProtocolError(f"{len(data)} bytes aren't the slots of an end: each has {END_SIZE}")
    if list_root(ListTag.STATE, [piece[:32] for piece in pieces]) != end:
        raise ProtocolError("the roots of an end don't lead to the state root that was claimed")
    return [EndSlot(piece[:32], bool(piece[32])) for piece in pieces]


@dataclass(frozen=True)
class RoundClaim:
    """``program`` on ``constants`` leads from ``start`` to ``end`` in ``steps`` steps: the struct that is signed."""

    plan: bytes
    worker: str
    round: int
    phase: int
    part: int
    roster: bytes
    program: bytes
    constants: bytes
    first_step: int
    steps: int
    start: bytes
    end: bytes
    sources: bytes

    def __post_init__(self) -> None:
        for name, bits in (("round", 64), ("phase", 32), ("part", 32), ("first_step", 64), ("steps", 64)):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ProtocolError(f"a claim's {name} is {getattr(self, name)}: it has to be below 2^{bits}")

    @cached_property
    def digest(self) -> bytes:
        """The name of the claim, which its author signs."""
        members = {entry.name: getattr(self, entry.name) for entry in fields(self)} | {"worker": int(self.worker, 16)}
        return message_digest(CLAIM_TYPE, list(members.values()))

    @property
    def place(self) -> tuple[int, int, int]:
        """Round, phase and part: a worker signs one claim for each."""
        return self.round, self.phase, self.part
