"""The root of an array whose bytes lie in several places (docs/spec/complete_state.md, "Arrays in parts").

Each holder of a range of bytes hashes its own bytes. It sends subtree roots, and the few bytes that share a leaf with
another holder's. The result is the root of the whole array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pol.commitments import _hashing, merkle
from pol.commitments.array import LEAF_SIZE, ArrayType, Bytes, root_over_tree
from pol.errors import ProtocolError


@dataclass(frozen=True)
class ArrayPart:
    """The report of the holder of bytes ``first`` to ``first + size`` of an array.

    ``head`` and ``tail`` are the bytes before the first and after the last border of a leaf; all of them are the head
    where no leaf lies between. ``nodes`` are the greatest subtrees over whole leaves as height, position and root.
    """

    first: int
    size: int
    head: bytes
    nodes: tuple[tuple[int, int, bytes], ...]
    tail: bytes


def describe_part(first: int, data: Bytes, threads: int = 0) -> ArrayPart:
    """The report on ``data``, the bytes of an array from ``first`` on; all cores if ``threads`` is 0."""
    end = first + data.size
    left, right = -(-first // LEAF_SIZE), end // LEAF_SIZE
    if left >= right:
        border = min(left * LEAF_SIZE, end)
        return ArrayPart(first, data.size, data[: border - first].tobytes(), (), data[border - first :].tobytes())
    nodes = []
    position = left
    while position < right:
        aligned = (position & -position).bit_length() - 1 if position else right.bit_length()
        height = min(aligned, (right - position).bit_length() - 1)
        start = position * LEAF_SIZE - first
        nodes.append(
            (height, position >> height, _hashing.data_tree(data[start : start + (LEAF_SIZE << height)], threads))
        )
        position += 1 << height
    head, tail = data[: left * LEAF_SIZE - first], data[right * LEAF_SIZE - first :]
    return ArrayPart(first, data.size, head.tobytes(), tuple(nodes), tail.tobytes())


def root_of_parts(type_: ArrayType, parts: Iterable[ArrayPart]) -> bytes:
    """The array root. Reports may come in any order, and several holders may report one range."""
    ordered = sorted({(part.first, part.size): part for part in parts if part.size}.values(), key=lambda p: p.first)
    known: dict[tuple[int, int], bytes] = {}
    shared: dict[int, bytes] = {}
    end = 0
    for part in ordered:
        if part.first != end:
            raise ProtocolError(f"the parts of an array leave a gap or overlap at byte {min(end, part.first)}")
        end = part.first + part.size
        known.update({(height, position): root for height, position, root in part.nodes})
        for piece, at in ((part.head, part.first), (part.tail, end - len(part.tail))):
            if piece:
                shared[at // LEAF_SIZE] = shared.get(at // LEAF_SIZE, b"") + piece
    if end != type_.nbytes:
        raise ProtocolError(f"the parts of an array have {end} bytes, the array has {type_.nbytes}")
    if not end:
        return root_over_tree(type_, merkle.PAD)
    known |= {(0, leaf): merkle.leaf_hash(data.ljust(LEAF_SIZE, b"\0")) for leaf, data in shared.items()}

    def node(height: int, position: int) -> bytes:
        if position << height >= type_.leaves:
            return merkle.pad_root(height)
        if (height, position) in known:
            return known[height, position]
        return merkle.parent(node(height - 1, 2 * position), node(height - 1, 2 * position + 1))

    return root_over_tree(type_, node(merkle.depth(type_.leaves), 0))
