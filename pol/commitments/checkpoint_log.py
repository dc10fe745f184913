"""The checkpoint log: an append-only Merkle tree as in RFC 9162 section 2 (docs/spec/commitments.md, "Checkpoint log").

The only user of pymerkle. Paths are the RFC's audit paths: lists of 32-byte hashes, without the leaf itself.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pymerkle import InmemoryTree

from pol.errors import ProtocolError

HASH_SIZE = 32


class CheckpointLog:
    """State roots after every interval of steps; entry 0 is the initial state."""

    def __init__(self, entries: Sequence[bytes] = ()) -> None:
        self._tree = InmemoryTree(algorithm="sha256")
        self._entries: list[bytes] = []
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[bytes, ...]:
        """All entries in order."""
        return tuple(self._entries)

    def append(self, root: bytes) -> int:
        """Adds a 32-byte state root and returns its index, counted from 0."""
        if len(root) != HASH_SIZE:
            raise ProtocolError(f"an entry of the log is a root of {HASH_SIZE} bytes, not of {len(root)}")
        self._tree.append_entry(root)
        self._entries.append(root)
        return len(self._entries) - 1

    def root(self, size: int | None = None) -> bytes:
        """The root over the first `size` entries, all if not given."""
        size = self._size(size)
        # pymerkle 7 deprecates the name of version 6.
        get_root = getattr(self._tree, "get_root", None) or self._tree.get_state
        return bytes(get_root(size))

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """The audit path of an entry in the tree over the first `size` entries (RFC 9162, 2.1.3.1)."""
        size = self._size(size)
        if not 0 <= index < size:
            raise ProtocolError(f"a log of {size} entries has no entry {index}")
        proof = self._tree.prove_inclusion(index + 1, size)
        return [bytes(node) for node in proof.path[1:]]

    def consistency(self, old_size: int, size: int | None = None) -> list[bytes]:
        """The path that shows the tree over `old_size` entries to be the beginning of the one over `size` (2.1.4.1)."""
        size = self._size(size)
        if not 0 < old_size <= size:
            raise ProtocolError(f"a log of {size} entries does not extend one of {old_size}")
        if old_size == size:
            return []
        proof = self._tree.prove_consistency(old_size, size)
        path = [bytes(node) for node in proof.path]
        if proof.subset[0]:
            return path
        # Where the old tree ends at the edge of a subtree, pymerkle lists the subtree to its right down to a leaf. The
        # RFC gives that subtree's root, and omits the root of the old tree, which the verifier knows.
        edge = proof.subset.index(1)
        right = path[0]
        for bit, sibling in zip(proof.rule[: edge - 1], path[1:edge], strict=True):
            right = _inner(sibling, right) if bit else _inner(right, sibling)
        left = path[edge : edge + 1] if sum(proof.subset) > 1 else []
        return [*left, right, *path[edge + 1 :]]

    def _size(self, size: int | None) -> int:
        size = len(self._entries) if size is None else size
        if not 0 < size <= len(self._entries):
            raise ProtocolError(f"the log has {len(self._entries)} entries: there is no tree over {size}")
        return size


@dataclass(frozen=True)
class LogEdge:
    """The roots of a log's complete subtrees, largest first: all that its root and those of later logs need."""

    size: int = 0
    subtrees: tuple[bytes, ...] = ()

    def append(self, entry: bytes) -> LogEdge:
        """The edge of the log with one entry more; about two hashes at any length of the log."""
        _check_hashes(entry)
        subtrees, node, rest = list(self.subtrees), hashlib.sha256(b"\x00" + entry).digest(), self.size
        while rest & 1:
            node, rest = _inner(subtrees.pop(), node), rest >> 1
        return LogEdge(self.size + 1, (*subtrees, node))

    def root(self) -> bytes:
        """The root of the log. Raises ProtocolError: the log is empty."""
        if not self.subtrees:
            raise ProtocolError("the log has 0 entries: there is no tree over 0")
        return functools.reduce(lambda right, left: _inner(left, right), reversed(self.subtrees))


def verify_inclusion(root: bytes, size: int, index: int, entry: bytes, path: Sequence[bytes]) -> None:
    """ProtocolError unless `entry` (the state root, not its hash) is entry `index` of the log (RFC 9162, 2.1.3.2)."""
    _check_hashes(root, entry, *path)
    if not 0 <= index < size:
        raise ProtocolError(f"a log of {size} entries has no entry {index}")
    position, last = index, size - 1
    node = hashlib.sha256(b"\x00" + entry).digest()
    for sibling in path:
        if last == 0:
            raise ProtocolError("the inclusion path is too long")
        if position & 1 or position == last:
            node = _inner(sibling, node)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            node = _inner(node, sibling)
        position, last = position >> 1, last >> 1
    if last != 0:
        raise ProtocolError("the inclusion path is too short")
    if node != root:
        raise ProtocolError(f"entry {index} does not stand in the log with this root")


def verify_consistency(old_root: bytes, old_size: int, root: bytes, size: int, path: Sequence[bytes]) -> None:
    """ProtocolError unless the log `old_root` is the beginning of the log `root` (RFC 9162, 2.1.4.2)."""
    _check_hashes(old_root, root, *path)
    if not 0 < old_size <= size:
        raise ProtocolError(f"a log of {size} entries does not extend one of {old_size}")
    if old_size == size:
        if path or old_root != root:
            raise ProtocolError(
                "two logs of one size are consistent only if their roots are equal and the path is empty"
            )
        return
    nodes = [old_root, *path] if old_size & (old_size - 1) == 0 else list(path)
    if not path:
        raise ProtocolError("the consistency path is empty")
    position, last = old_size - 1, size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old = new = nodes[0]
    for sibling in nodes[1:]:
        if last == 0:
            raise ProtocolError("the consistency path is too long")
        if position & 1 or position == last:
            old, new = _inner(sibling, old), _inner(sibling, new)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            new = _inner(new, sibling)
        position, last = position >> 1, last >> 1
    if last != 0:
        raise ProtocolError("the consistency path is too short")
    if old != old_root or new != root:
        raise ProtocolError("the later log does not begin with the earlier one")


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _check_hashes(*hashes: bytes) -> None:
    for node in hashes:
        if len(node) != HASH_SIZE:
            raise ProtocolError(f"a hash has {HASH_SIZE} bytes, not {len(node)}")
