"""The checkpoint log follows RFC 9162: paths equal the RFC's recursive definitions, and damaged proofs are refused."""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree
from pymerkle import verify_consistency as pymerkle_consistency
from pymerkle import verify_inclusion as pymerkle_inclusion

from pol.commitments.checkpoint_log import CheckpointLog, LogEdge, verify_consistency, verify_inclusion
from pol.errors import ProtocolError

pytestmark = pytest.mark.rules

ENTRIES = [random.Random(i).randbytes(32) for i in range(70)]


def H(data: bytes) -> bytes:  # noqa: N802 - the RFC's notation
    return hashlib.sha256(data).digest()


def split(count: int) -> int:
    k = 1
    while 2 * k < count:
        k *= 2
    return k


def tree_hash(entries: list[bytes]) -> bytes:
    """MTH of RFC 9162, 2.1.1."""
    if len(entries) == 1:
        return H(b"\x00" + entries[0])
    k = split(len(entries))
    return H(b"\x01" + tree_hash(entries[:k]) + tree_hash(entries[k:]))


def audit_path(m: int, entries: list[bytes]) -> list[bytes]:
    """PATH of RFC 9162, 2.1.3.1."""
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*audit_path(m, entries[:k]), tree_hash(entries[k:])]
    return [*audit_path(m - k, entries[k:]), tree_hash(entries[:k])]


def subproof(m: int, entries: list[bytes], known: bool) -> list[bytes]:
    """SUBPROOF of RFC 9162, 2.1.4.1."""
    if m == len(entries):
        return [] if known else [tree_hash(entries)]
    k = split(len(entries))
    if m <= k:
        return [*subproof(m, entries[:k], known), tree_hash(entries[k:])]
    return [*subproof(m - k, entries[k:], False), tree_hash(entries[:k])]


@pytest.mark.parametrize("size", [*range(1, 20), 31, 32, 33, 64, 70])
def test_paths_are_those_of_the_rfc(size: int) -> None:
    log = CheckpointLog(ENTRIES)
    entries = ENTRIES[:size]
    root = tree_hash(entries)
    assert log.root(size) == root
    for index in range(size):
        path = log.inclusion(index, size)
        assert path == audit_path(index, entries)
        verify_inclusion(root, size, index, ENTRIES[index], path)
    for old in range(1, size + 1):
        path = log.consistency(old, size)
        assert path == subproof(old, entries, True)
        verify_consistency(tree_hash(entries[:old]), old, root, size, path)


def test_published_roots() -> None:
    """The test vectors that Certificate Transparency implementations share."""
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [bytes.fromhex(text) for text in inputs]
    assert tree_hash(leaves[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert tree_hash(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_a_log_that_grows_has_the_roots_of_the_whole_one() -> None:
    edge = LogEdge()
    with pytest.raises(ProtocolError, match="0 entries"):
        edge.root()
    for size, entry in enumerate(ENTRIES, 1):
        edge = edge.append(entry)
        assert (edge.size, edge.root()) == (size, CheckpointLog(ENTRIES[:size]).root())
    with pytest.raises(ProtocolError, match="32 bytes"):
        edge.append(b"short")


def test_agrees_with_pymerkle() -> None:
    tree, log = InmemoryTree(algorithm="sha256"), CheckpointLog()
    for i, entry in enumerate(ENTRIES[:20]):
        tree.append_entry(entry)
        assert log.append(entry) == i
        for index in range(i + 1):
            pymerkle_inclusion(tree.get_leaf(index + 1), log.root(), tree.prove_inclusion(index + 1))
        for old in range(1, i + 2):
            pymerkle_consistency(log.root(old), log.root(), tree.prove_consistency(old))
    assert (len(log), log.entries) == (20, tuple(ENTRIES[:20]))


@given(st.integers(1, 70), st.data())
def test_damaged_inclusion_proofs_are_refused(size: int, data: st.DataObject) -> None:
    log = CheckpointLog(ENTRIES)
    index = data.draw(st.integers(0, size - 1))
    path, root = log.inclusion(index, size), log.root(size)
    claims = [
        (H(root), size, index, ENTRIES[index], path),
        (root, size, index, H(ENTRIES[index]), path),
        (root, size, index, ENTRIES[index], [*path, H(b"")]),
        (root, size, size, ENTRIES[index], path),
        (root, size, -1, ENTRIES[index], path),
        (root, size, index, ENTRIES[index] + b"\0", path),
    ]
    if size > 1:
        other = data.draw(st.integers(0, size - 1).filter(lambda i: i != index))
        claims += [(root, size, other, ENTRIES[index], path), (root, size, index, ENTRIES[index], path[:-1])]
    if path:
        place = data.draw(st.integers(0, len(path) - 1))
        damaged = [*path[:place], H(path[place]), *path[place + 1 :]]
        claims += [(root, size, index, ENTRIES[index], damaged), (root, size, index, ENTRIES[index], [b"", *path[1:]])]
    for claim in claims:
        with pytest.raises(ProtocolError):
            verify_inclusion(*claim)


@given(st.integers(2, 70), st.data())
def test_damaged_consistency_proofs_are_refused(size: int, data: st.DataObject) -> None:
    log = CheckpointLog(ENTRIES)
    old = data.draw(st.integers(1, size - 1))
    path, old_root, root = log.consistency(old, size), log.root(old), log.root(size)
    place = data.draw(st.integers(0, len(path) - 1))
    damaged = [*path[:place], H(path[place]), *path[place + 1 :]]
    for claim in [
        (H(old_root), old, root, size, path),
        (old_root, old, H(root), size, path),
        (old_root, old, root, size, damaged),
        (old_root, old, root, size, [*path, H(b"")]),
        (old_root, old, root, size, path[:-1]),
        (old_root, 0, root, size, path),
        (root, size, old_root, old, path),
        (old_root, old, root, old, path),
        (old_root, old, old_root, old, path),
    ]:
        with pytest.raises(ProtocolError):
            verify_consistency(*claim)
    rewritten = CheckpointLog([H(ENTRIES[0]), *ENTRIES[1:size]])
    with pytest.raises(ProtocolError):
        verify_consistency(old_root, old, rewritten.root(), size, rewritten.consistency(old))


def test_what_the_log_does_not_hold_is_refused() -> None:
    log = CheckpointLog()
    for call in (log.root, lambda: log.inclusion(0), lambda: log.consistency(1), lambda: log.append(b"short")):
        with pytest.raises(ProtocolError):
            call()
    log.append(ENTRIES[0])
    for call in (lambda: log.inclusion(1), lambda: log.root(2), lambda: log.consistency(0), lambda: log.consistency(2)):
        with pytest.raises(ProtocolError):
            call()
    assert log.consistency(1) == []
    verify_consistency(log.root(), 1, log.root(), 1, [])
