"""The position of a dispute: agreed facts, open parts, the side on turn (docs/spec/dispute.md#position)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

from pol.commitments.array import LEAF_SIZE
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import branch, depth, leaf_hash, pad_root, tree
from pol.dispute.agreed_facts import Facts
from pol.graph.tensor_type import LEAF_WORDS

HASH_BITS = 4
"""Levels of a tree that one move opens: 16 children. A deployment may take 5."""
VALUE_BITS = 6
"""The same for accumulators: 64 parts."""
CHUNK_TERMS = 64
"""Most terms that a proof executes at once."""


class Side(IntEnum):
    """The two players."""

    NONE = 0
    ASSERTER = 1
    CHALLENGER = 2

    @property
    def other(self) -> Side:
        """The opponent."""
        return Side(3 - self)


class Level(IntEnum):
    """The level of a dispute: the kind of the open parts."""

    STEPS = 1
    NODES = 2
    LEAVES = 3
    LEAF = 4
    TERMS = 5
    BODY = 6
    STATE = 7
    SUM_SLOTS = 8
    SUM_LEAVES = 9


TREES = (Level.NODES, Level.LEAVES, Level.STATE)
SUMS = (Level.SUM_SLOTS, Level.SUM_LEAVES)
WORDS = (Level.LEAF, Level.TERMS, Level.BODY)


class ClaimKind(IntEnum):
    """The subject of a challenge (docs/spec/verdict.md#claim)."""

    REPLAY = 1
    DISTANCE = 2
    REFERENCE = 3
    RECEIPT = 7


def share(height: int, bits: int) -> int:
    """The part of a height that one move opens: the fewest moves that ``bits`` allows, of even size."""
    return -(-height // -(-height // bits)) if height else 0


def parts(lo: int, hi: int, bits: int) -> list[int]:
    """The boundaries of the parts that ``[lo, hi)`` is cut into, both ends included."""
    n = hi - lo
    c = min(n, 1 << share(depth(n), bits))
    return [lo + i * n // c for i in range(c + 1)]


@dataclass(frozen=True)
class Position:
    """The disputed point, from which one or the other side moves."""

    level: Level
    turn: Side
    facts: Facts
    opened: bytes = b""
    """The payload that lies open, laid there by the side that is not on turn."""
    height: int = 0
    count: int = 0
    lo: int = 0
    hi: int = 0
    agreed: bytes = b""
    """State root (32 bytes) or accumulator (4) before the disputed range."""
    bits: int = HASH_BITS

    @property
    def item_bytes(self) -> int:
        """Size of one opened part."""
        return 4 if self.level in WORDS else 32

    @cached_property
    def items(self) -> list[bytes]:
        """The opened parts."""
        size = self.item_bytes
        return [self.opened[i : i + size] for i in range(0, len(self.opened), size)]

    @property
    def boundaries(self) -> list[int]:
        """The boundaries of the parts of a range."""
        return parts(self.lo, self.hi, VALUE_BITS if self.level is Level.TERMS else self.bits)

    @property
    def opened_height(self) -> int:
        """Levels of the disputed subtree that lie open."""
        return share(self.height, self.bits)

    @property
    def list_length(self) -> int:
        """Leaves of the tree that the disputed subtree belongs to."""
        return -(-self.count // LEAF_WORDS) if self.level is Level.LEAVES else self.count

    @property
    def expected_bytes(self) -> int:
        """Length of what is opened here."""
        if self.level is Level.LEAF:
            return LEAF_SIZE
        if self.level is Level.BODY:
            return 4 * self.count
        if self.level not in TREES:
            return self.item_bytes * (len(self.boundaries) - 1)
        height = self.height - self.opened_height
        existing = -(-(self.list_length - self.lo) // (1 << height))
        return 32 * min(1 << self.opened_height, existing)

    @cached_property
    def row(self) -> list[bytes]:
        """The leaves of the tree that commits to what lies open."""
        if self.level in TREES:
            padding = pad_root(self.height - self.opened_height)
            return self.items + [padding] * ((1 << self.opened_height) - len(self.items))
        if self.level is Level.STEPS:
            ends = [self.agreed, *self.items]
            return [keccak256(a + b) for a, b in pairwise(ends)]
        if self.level is Level.TERMS:
            return [leaf_hash(piece) for piece in self.pieces]
        return self.pieces if self.level is Level.LEAF else self.items

    @cached_property
    def pieces(self) -> list[bytes]:
        """LEAF and TERMS are shown in pieces of eight words; in TERMS with the one before them."""
        if self.level is Level.LEAF:
            return [self.opened[i : i + 32] for i in range(0, LEAF_SIZE, 32)]
        ends = self.agreed + self.opened
        return [ends[i : i + 36].ljust(36, b"\0") for i in range(0, len(self.opened), 32)]

    @cached_property
    def opening(self) -> bytes:
        """Commitment to what lies open."""
        return keccak256(self.opened) if self.level is Level.BODY else tree(self.row)

    def witness(self, index: int) -> bytes:
        """The bytes that show a picked part to stand in the opening."""
        if self.level is Level.BODY:
            return self.opened
        if self.level in (Level.LEAF, Level.TERMS):
            return self.pieces[index // 8] + b"".join(branch(self.row, index // 8))
        siblings = b"".join(branch(self.row, index))
        if self.level is Level.STEPS:
            return [self.agreed, *self.items][index] + self.items[index] + siblings
        return self.items[index] + siblings


def packed_position(position: Position) -> bytes:
    """The 52 bytes that every move repeats: `frame || u32 count || u64 lo || u64 hi`."""
    return position.facts.frame + _numbers(position)


def state_hash(position: Position, on_turn: bytes) -> bytes:
    """The hash that the chain stores; ``on_turn`` is the 20-byte address of the side on turn."""
    level_and_height = bytes((position.level, position.height))
    return keccak256(position.facts.frame + position.opening + on_turn + level_and_height + _numbers(position))


def _numbers(position: Position) -> bytes:
    return position.count.to_bytes(4, "big") + position.lo.to_bytes(8, "big") + position.hi.to_bytes(8, "big")
