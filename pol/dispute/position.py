"""Where a dispute stands, and the bytes by which the chain remembers it (docs/spec/dispute.md#position)."""

from dataclasses import astuple, dataclass, fields, replace
from enum import IntEnum

from pol.commitments.keccak import keccak256

ZERO = bytes(32)
HASH_ARITY = 16
"""Children of one opening of hashes or sums."""
VALUE_ARITY = 64
"""Parts of one opening of accumulators."""
LEAF_WORDS = 64


class Level(IntEnum):
    """How far the walk has come down."""

    STEPS = 1
    TRACE = 2
    NODES = 3
    NODE = 4
    LEAVES = 5
    LEAF = 6
    TERMS = 7
    BODY = 8
    ONE_STEP = 9
    STATE = 10
    SLOTS = 11
    SLOT = 12
    SUM_SLOTS = 13
    SUM_SLOT = 14
    SUM_LEAVES = 15
    SUM_LEAF = 16


class Kind(IntEnum):
    """What a challenge is about (docs/spec/verdict.md#claim)."""

    REPLAY = 1
    DISTANCE = 2
    REFERENCE = 3


@dataclass(frozen=True)
class Position:
    """The disputed point and all that later moves need; field order is the order of the hashed bytes."""

    level: Level
    height: int = 0
    count: int = 0
    lo: int = 0
    hi: int = 0
    agreed: bytes = ZERO
    claimed: bytes = ZERO
    opening: bytes = ZERO
    pre: bytes = ZERO
    trace: bytes = ZERO
    descriptor: bytes = ZERO
    step: int = 0
    node: int = 0
    element: int = 0
    term: int = 0
    terms: int = 0
    init: int = 0
    instructions: int = 0
    instruction: int = 0

    def encode(self) -> bytes:
        """The ABI encoding: one 32-byte word a field."""
        values = (getattr(self, field.name) for field in fields(self))
        return b"".join(v if isinstance(v, bytes) else int(v).to_bytes(32, "big") for v in values)

    def hash(self) -> bytes:
        """What the chain stores."""
        return keccak256(self.encode())

    def abi_tuple(self) -> tuple[int | bytes, ...]:
        """The fields as a contract call takes them."""
        return tuple(v if isinstance(v, bytes) else int(v) for v in astuple(self))


def word(value: int) -> bytes:
    """A scalar or a sum in a bytes32 field."""
    return value.to_bytes(32, "big")


def parts(lo: int, hi: int, arity: int) -> list[int]:
    """The boundaries by which ``[lo, hi)`` is cut into at most ``arity`` parts; both ends included."""
    n = hi - lo
    c = min(arity, n)
    return [lo + i * n // c for i in range(c + 1)]


def replay_start(nodes: int, nodes_tree: bytes, first_step: int, steps: int, start: bytes, end: bytes) -> Position:
    """The first position of a challenge to a replay: ``start`` leads to ``end`` in ``steps`` steps.

    Later moves know the program's number of nodes and the tree of their descriptors from the position.
    """
    last = first_step + steps
    position = Position(
        Level.STEPS, count=nodes, lo=first_step, hi=last, agreed=start, claimed=end, descriptor=nodes_tree
    )
    return enter_trace(position) if steps == 1 else position


def sum_start(slots: int, component: int, x: bytes, y: bytes, claimed: int) -> Position:
    """The first position of a challenge to a distance between the states ``x`` and ``y``."""
    level = Level.SUM_SLOT if slots == 1 else Level.SUM_SLOTS
    return Position(level, lo=0, hi=slots, claimed=word(claimed), pre=x, trace=y, node=component)


def enter_trace(position: Position) -> Position:
    """One step is left: what is before it is agreed."""
    return replace(position, level=Level.TRACE, step=position.lo, pre=position.agreed, agreed=ZERO)
