"""The moves of the game: what each side may put on the chain (docs/spec/dispute.md#levels-and-moves)."""

from dataclasses import dataclass
from typing import TypeAlias

from pol.dispute.openings import Opening
from pol.errors import ProtocolError


class IllegalMove(ProtocolError):
    """The move breaks a rule of docs/spec/dispute.md; the contract reverts on it."""


@dataclass(frozen=True)
class Claim:
    """What stays fixed through a dispute: the program and its constants."""

    program: bytes
    constants: bytes


@dataclass(frozen=True)
class Open:
    """The asserter shows what lies under the disputed commitment."""

    payload: bytes


@dataclass(frozen=True)
class Pick:
    """The challenger names the first part it disagrees with, and repeats what was opened."""

    index: int
    payload: bytes


@dataclass(frozen=True)
class PickState:
    """The challenger agrees with the whole trace but not with the state that is claimed to follow from it."""


@dataclass(frozen=True)
class Describe:
    """The asserter shows the disputed node's descriptor and the tree of its output tensor."""

    branch: tuple[bytes, ...]
    descriptor: bytes
    tree: bytes


@dataclass(frozen=True)
class DescribeSlot:
    """The asserter shows the slot that a disputed sum belongs to."""

    header: bytes
    branch: tuple[bytes, ...]
    descriptor: bytes


@dataclass(frozen=True)
class ProveStep:
    """The asserter supplies the operands; the chain executes the instruction."""

    descriptor: bytes
    values: bytes
    openings: tuple[Opening, ...]


@dataclass(frozen=True)
class ProveSlot:
    """The asserter shows that the slot's root stands in the trace, at the node that produces the slot."""

    header: bytes
    descriptor: bytes
    descriptor_branch: tuple[bytes, ...]
    trace_branch: tuple[bytes, ...]


@dataclass(frozen=True)
class ProveSum:
    """The asserter shows the leaves of both states; the chain adds up 64 squared differences."""

    descriptor: bytes
    x: Opening
    y: Opening


Move: TypeAlias = Open | Pick | PickState | Describe | DescribeSlot | ProveStep | ProveSlot | ProveSum


@dataclass(frozen=True)
class Ended:
    """The dispute is decided."""

    asserter_won: bool
    detail: str
