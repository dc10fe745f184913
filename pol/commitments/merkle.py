"""Binary Merkle trees of fixed depth (docs/spec/commitments.md, "Tree"). Lists of hashes may be given joined."""

from __future__ import annotations

from collections.abc import Sequence

from pol.commitments import _hashing
from pol.commitments.keccak import HASH_SIZE, keccak256
from pol.errors import ProtocolError

PAD = keccak256(b"pol/pad/1")
"""The leaf in every position past the end."""

Hashes = Sequence[bytes] | bytes


def depth(count: int) -> int:
    """The smallest d with 2^d >= count, for count >= 1."""
    if count < 1:
        raise ProtocolError(f"a tree has at least one leaf, not {count}")
    return (count - 1).bit_length()


def leaf_hash(data: bytes) -> bytes:
    """The leaf over a piece of data; its tag keeps it apart from inner nodes."""
    return keccak256(b"\0" + data)


def parent(left: bytes, right: bytes) -> bytes:
    """The inner node over two nodes."""
    return keccak256(b"\x01" + left + right)


def tree(leaves: Hashes) -> bytes:
    """The root over at least one leaf."""
    return _hashing.tree(_joined(leaves))


def levels(leaves: Hashes) -> list[bytes]:
    """All nodes, level by level from the leaves up, PADs included: level h is the join of 2^(depth-h) hashes."""
    return _hashing.levels(_joined(leaves))


def node(levels_: Sequence[bytes], height: int, position: int) -> bytes:
    """One node out of what `levels` returned."""
    level = levels_[height]
    if not 0 <= position < len(level) // HASH_SIZE:
        raise ProtocolError(f"level {height} has no node {position}")
    return level[position * HASH_SIZE : (position + 1) * HASH_SIZE]


def pad_root(height: int) -> bytes:
    """The root of a subtree of PADs of this height."""
    result = PAD
    for _ in range(height):
        result = parent(result, result)
    return result


def branch(leaves: Hashes, position: int) -> list[bytes]:
    """The siblings of a leaf, from the bottom up; always `depth` many. A position may be that of a PAD."""
    return branch_from_levels(levels(leaves), position)


def branch_from_levels(levels_: Sequence[bytes], position: int) -> list[bytes]:
    """As `branch`, for a tree whose levels are at hand."""
    node(levels_, 0, position)
    return [node(levels_, height, position >> height ^ 1) for height in range(len(levels_) - 1)]


def branch_of_two(leaves: Hashes, position: int) -> list[bytes]:
    """The siblings of two adjacent leaves from the bottom up: left and right until paths meet, then one a height."""
    levels_ = levels(leaves)
    left, right = position, position + 1
    node(levels_, 0, right)
    found = []
    for height in range(len(levels_) - 1):
        if left == right:
            found.append(node(levels_, height, left ^ 1))
        elif left ^ 1 != right:
            found += [node(levels_, height, left ^ 1), node(levels_, height, right ^ 1)]
        left, right = left >> 1, right >> 1
    return found


def length_of_two(position: int, depth_: int) -> int:
    """The number of siblings of `branch_of_two` at a position, in a tree of this depth that holds both leaves."""
    apart = (position ^ (position + 1)).bit_length() - 1
    return depth_ - 1 + apart


def climb_two(left: bytes, right: bytes, position: int, siblings: Sequence[bytes]) -> bytes:
    """The root that follows from the leaves at ``position`` and the next one, and their `branch_of_two`."""
    rest = list(siblings)
    while position & 1:
        if len(rest) < 2:
            raise ProtocolError("the branch ends before the two paths meet")
        left, right, rest, position = parent(rest[0], left), parent(right, rest[1]), rest[2:], position >> 1
    return climb(parent(left, right), position >> 1, rest)


def climb(leaf: bytes, position: int, siblings: Sequence[bytes]) -> bytes:
    """The root that follows from a leaf, its position and its branch; ProtocolError if the position is too great."""
    if not 0 <= position < 1 << len(siblings):
        raise ProtocolError(f"position {position} does not exist in a tree of depth {len(siblings)}")
    for sibling in (leaf, *siblings):
        if len(sibling) != HASH_SIZE:
            raise ProtocolError(f"a hash has {HASH_SIZE} bytes, not {len(sibling)}")
    result = leaf
    for height, sibling in enumerate(siblings):
        result = parent(sibling, result) if position >> height & 1 else parent(result, sibling)
    return result


def _joined(leaves: Hashes) -> bytes:
    if not isinstance(leaves, bytes):
        for leaf in leaves:
            if len(leaf) != HASH_SIZE:
                raise ProtocolError(f"a hash has {HASH_SIZE} bytes, not {len(leaf)}")
        leaves = b"".join(leaves)
    if len(leaves) % HASH_SIZE or not leaves:
        raise ProtocolError(f"a tree is over hashes of {HASH_SIZE} bytes, at least one; {len(leaves)} bytes were given")
    return leaves
