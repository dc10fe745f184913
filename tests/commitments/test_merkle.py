"""keccak-256, trees, branches and tensor roots against published digests and plain re-implementations."""

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import sha3
from eth_hash.auto import keccak as eth_keccak
from hypothesis import given
from hypothesis import strategies as st

import instruction_sets
from pol.commitments import _hashing, merkle
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import (
    ListTag,
    constants_root,
    list_root,
    state_root,
    tensor_leaves,
    tensor_root,
    tensor_tree,
)
from pol.errors import ProtocolError
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.rules


@pytest.fixture(params=_hashing.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    with instruction_sets.held(request.param, _hashing):
        yield request.param


def H(data: bytes) -> bytes:  # noqa: N802 - the specification's name
    return bytes(sha3.keccak_256(data).digest())


PAD = H(b"pol/pad/1")


def plain_levels(leaves: list[bytes]) -> list[list[bytes]]:
    depth = 0
    while 1 << depth < len(leaves):
        depth += 1
    level = leaves + [PAD] * ((1 << depth) - len(leaves))
    levels = [level]
    while len(level) > 1:
        level = [H(b"\x01" + level[i] + level[i + 1]) for i in range(0, len(level), 2)]
        levels.append(level)
    return levels


def is_valid_merkle_branch(leaf: bytes, siblings: Sequence[bytes], position: int, root: bytes) -> bool:
    try:
        return merkle.climb(leaf, position, siblings) == root
    except ProtocolError:
        return False


def hashes(count: int) -> list[bytes]:
    source = random.Random(count)
    return [source.randbytes(32) for _ in range(count)]


@pytest.mark.parametrize(
    "count", [*range(1, 20), 31, 32, 33, 63, 64, 65, 100, 128, 129, 255, 256, 257, 300, 1025, 2049]
)
def test_tree_and_levels(isa: str, count: int) -> None:
    leaves = hashes(count)
    expected = plain_levels(leaves)
    assert merkle.levels(leaves) == [b"".join(level) for level in expected]
    assert merkle.tree(leaves) == merkle.tree(b"".join(leaves)) == expected[-1][0]
    assert merkle.depth(count) == len(expected) - 1


@given(st.integers(1, 300), st.data())
def test_branch_leads_to_the_root_from_its_own_position_only(count: int, data: st.DataObject) -> None:
    leaves = hashes(count)
    root = merkle.tree(leaves)
    depth = merkle.depth(count)
    position = data.draw(st.integers(0, (1 << depth) - 1))
    leaf = leaves[position] if position < count else merkle.PAD
    branch = merkle.branch(leaves, position)
    assert len(branch) == depth
    assert branch == [level[position >> h ^ 1] for h, level in enumerate(plain_levels(leaves)[:-1])]
    assert merkle.climb(leaf, position, branch) == root
    assert is_valid_merkle_branch(leaf, branch, position, root)
    other = data.draw(st.integers(0, (1 << depth) - 1))
    if other != position and (leaves[other] if other < count else merkle.PAD) != leaf:
        assert not is_valid_merkle_branch(leaf, branch, other, root)
    if branch:
        height = data.draw(st.integers(0, depth - 1))
        damaged = [*branch[:height], H(branch[height]), *branch[height + 1 :]]
        assert not is_valid_merkle_branch(leaf, damaged, position, root)
        assert not is_valid_merkle_branch(leaf, branch[:-1], position, root)


def test_what_is_no_tree_or_branch_is_refused() -> None:
    for leaves in ([], b"", [b"short"], b"x" * 33):
        with pytest.raises(ProtocolError):
            merkle.tree(leaves)
        with pytest.raises(ProtocolError):
            merkle.levels(leaves)
    leaves = hashes(5)
    for position in (-1, 8):
        with pytest.raises(ProtocolError):
            merkle.branch(leaves, position)
    branch = merkle.branch(leaves, 3)
    assert not is_valid_merkle_branch(leaves[3], branch, -1, merkle.tree(leaves))
    assert not is_valid_merkle_branch(leaves[3], branch, 11, merkle.tree(leaves))
    assert not is_valid_merkle_branch(leaves[3], [*branch[:2], b"short"], 3, merkle.tree(leaves))
    with pytest.raises(ProtocolError):
        merkle.depth(0)


def plain_tensor_leaves(data: bytes) -> list[bytes]:
    data += bytes(-len(data) % 256)
    return [H(b"\x00" + data[i : i + 256]) for i in range(0, len(data), 256)]


@pytest.mark.parametrize(
    "size", [1, 2, 63, 64, 65, 127, 128, 129, 640, 64 * 9 - 1, 64 * 17 + 5, 64 * 1024, 64 * 1024 + 1]
)
def test_tensor_tree(isa: str, size: int) -> None:
    words = np.random.default_rng(size).integers(0, 2**32, size, dtype=np.uint32)
    leaves = plain_tensor_leaves(words.astype("<u4").tobytes())
    assert tensor_leaves(words) == b"".join(leaves)
    assert tensor_tree(words) == plain_levels(leaves)[-1][0]


def test_large_tensors_hash_alike_on_any_number_of_threads(isa: str) -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (1 << 20) + 77, dtype=np.uint32)
    leaves = _hashing.hash_leaves(words, 1)
    assert leaves == _hashing.hash_leaves(words, 3)
    assert _hashing.data_tree(words, 1) == _hashing.data_tree(words, 3) == merkle.tree(leaves)
    assert leaves[-32:] == plain_tensor_leaves(words[-(words.size % 64) :].tobytes())[0]


def test_tensor_root_covers_type_and_order() -> None:
    words = np.arange(70, dtype=np.uint32).reshape(7, 10)
    type_ = TensorType(DType.F32, (7, 10))
    tree = plain_levels(plain_tensor_leaves(words.tobytes()))[-1][0]
    assert tensor_root(type_, words) == H(bytes([2, 1, 2, 0, 0, 0, 7, 0, 0, 0, 10]) + tree)
    roots = {
        tensor_root(type_, words),
        tensor_root(TensorType(DType.I32, (7, 10)), words),
        tensor_root(TensorType(DType.F32, (70,)), words.reshape(70)),
        tensor_root(TensorType(DType.F32, (10, 7)), np.ascontiguousarray(words.T)),
    }
    assert len(roots) == 4
    assert tensor_root(TensorType(DType.F32, (10, 7)), words.T) in roots  # not dense: copied, not misread
    scalar = np.array(5, np.uint32)
    assert tensor_root(TensorType(DType.I32, ()), scalar) == H(b"\x02\x02\x00" + H(b"\x00" + b"\x05" + bytes(255)))


def test_what_is_no_tensor_is_refused() -> None:
    type_ = TensorType(DType.F32, (4,))
    for words in (np.zeros(5, np.uint32), np.zeros((2, 2), np.uint32), np.zeros(4, np.float32), np.zeros(4, ">u4")):
        with pytest.raises(ProtocolError):
            tensor_root(type_, words)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ProtocolError):
        tensor_tree(np.zeros(0, np.uint32))


def test_lists_of_tensors() -> None:
    types = [TensorType(DType.F32, (3,)), TensorType(DType.I32, ()), TensorType(DType.F32, (2, 2))]
    tensors = [np.arange(t.numel, dtype=np.uint32).reshape(t.shape) for t in types]
    roots = [tensor_root(t, w) for t, w in zip(types, tensors, strict=True)]
    tree = plain_levels(roots)[-1][0]
    for tag, root in ((3, state_root), (8, constants_root)):
        assert root(types, tensors) == H(bytes([tag]) + b"\x00\x00\x00\x03" + tree) == list_root(ListTag(tag), roots)
    with pytest.raises(ProtocolError):
        state_root(types, tensors[:2])
    with pytest.raises(ProtocolError):
        list_root(ListTag.STATE, [])


@pytest.mark.parametrize("count", [2, 3, 5, 8, 13])
def test_two_adjacent_leaves_share_a_branch(count: int) -> None:
    leaves = [sha3.keccak_256(bytes([i])).digest() for i in range(count)]
    for left in range(count - 1):
        siblings = merkle.branch_of_two(leaves, left)
        assert len(siblings) == merkle.length_of_two(left, merkle.depth(count))
        assert merkle.climb_two(leaves[left], leaves[left + 1], left, siblings) == merkle.tree(leaves)
        assert merkle.climb_two(leaves[left + 1], leaves[left], left, siblings) != merkle.tree(leaves)


@pytest.mark.parametrize(
    ("message", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (b"testing", "5f16f4c7f149ac4f9510d9cf8cf384038ad348b3bcdc01915f95de12df9d1b02"),
        (b"transfer(address,uint256)", "a9059cbb2ab09eb219583f4a59a5d0623ade346d962bcd4e46b11da047c9049b"),
    ],
)
def test_published_digests(isa: str, message: bytes, digest: str) -> None:
    assert keccak256(message).hex() == digest


def test_every_length_around_the_block_boundaries(isa: str) -> None:
    source = random.Random(4)
    for size in [*range(420), 1359, 1360, 1361, 10_000]:
        message = source.randbytes(size)
        assert keccak256(message) == sha3.keccak_256(message).digest() == eth_keccak(message)


def test_is_not_the_standardised_sha3() -> None:
    assert keccak256(b"abc") != sha3.sha3_256(b"abc").digest()


def test_views_of_memory_are_accepted_and_text_is_not() -> None:
    assert _hashing.keccak256(memoryview(b"xabcx")[1:4]) == keccak256(b"abc")
    with pytest.raises(TypeError):
        _hashing.keccak256("abc")  # type: ignore[arg-type]  # text has no bytes of its own
