"""The moves of the game, which a side sends to the chain (docs/spec/dispute.md#moves)."""

from dataclasses import dataclass
from typing import TypeAlias

from pol.dispute.openings import Opening, ShownLeaf
from pol.dispute.position import Side
from pol.errors import ProtocolError


class IllegalMove(ProtocolError):
    """The move breaks a rule of docs/spec/dispute.md; the contract reverts on it."""


class Upheld(IllegalMove):
    """The proof yields the value that the other side had claimed: it refutes nothing; the contract reverts on it."""


@dataclass(frozen=True)
class Answer:
    """Pick a part and open one's own version of it."""

    index: int
    payload: bytes


@dataclass(frozen=True)
class Describe:
    """Pick a node, show its descriptor and open one's own output of it."""

    index: int
    header: bytes
    branch: tuple[bytes, ...]
    descriptor: bytes
    payload: bytes


@dataclass(frozen=True)
class OpenState:
    """Agree with the whole trace and open the state that one had claimed to follow from it."""

    header: bytes
    payload: bytes


@dataclass(frozen=True)
class Show:
    """Show a node of a published trace, or a leaf of its output, and open one's own version of it."""

    node: int
    header: bytes
    root: bytes
    trace_branch: tuple[bytes, ...]
    branch: tuple[bytes, ...]
    descriptor: bytes
    leaf: tuple[ShownLeaf, ...]
    """None, or the one that is shown."""
    payload: bytes

    @property
    def index(self) -> int:
        """The kind of what is shown: 1 a node, 2 a leaf."""
        return 1 + len(self.leaf)


@dataclass(frozen=True)
class Unfold:
    """Pick an element and open its computation: accumulators, or the results of all instructions."""

    index: int
    payload: bytes


@dataclass(frozen=True)
class OpenBody:
    """Pick one term and open the results of all instructions."""

    index: int
    payload: bytes


@dataclass(frozen=True)
class DescribeSlot:
    """Pick one slot of a sum, show its descriptor and open the sums of its leaves; nothing if it doesn't count."""

    index: int
    header: bytes
    branch: tuple[bytes, ...]
    descriptor: bytes
    payload: bytes


@dataclass(frozen=True)
class ProveStep:
    """Supply the operands of one instruction, or of a chunk of a chain of fma; the chain executes it."""

    index: int
    openings: tuple[Opening, ...]


@dataclass(frozen=True)
class ProveSlot:
    """Show that the node that produces a slot yielded something else."""

    index: int
    header: bytes
    branch: tuple[bytes, ...]
    descriptor: bytes
    produced: bytes
    trace_branch: tuple[bytes, ...]


@dataclass(frozen=True)
class ProveSum:
    """Show a leaf in both states; the chain adds up 64 squared differences."""

    index: int
    x: Opening
    y: Opening


Move: TypeAlias = (
    Answer | Describe | OpenState | Show | Unfold | OpenBody | DescribeSlot | ProveStep | ProveSlot | ProveSum
)
Proof = (ProveStep, ProveSlot, ProveSum)


@dataclass(frozen=True)
class DisputeEnded:
    """The dispute is decided."""

    winner: Side
    detail: str
