"""Exact distances against a definition in Fractions."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_distance_vectors import F32, distance

from pol.claims.distance import INFINITE, SATURATION, UNEQUAL, leaf_distances, saturating_sum, tensor_distance
from pol.errors import ProtocolError
from pol.graph.tensor_type import DType

pytestmark = pytest.mark.rules

WORD = st.integers(0, 2**32 - 1)
# Words that matter: values near each other, near the range's end, and everything that isn't finite.
F32_WORD = st.one_of(
    WORD,
    st.floats(width=32, allow_nan=False, min_value=-4.0, max_value=4.0).map(
        lambda x: struct.unpack("<I", struct.pack("<f", x))[0]
    ),
    st.sampled_from(
        [
            0, 0x80000000, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x4B000000,
            0x4AFFFFFF, 0xCAFFFFFF,
        ]
    ),
)  # fmt: skip


def word_distance(dtype: DType, x: int, y: int) -> int:
    return tensor_distance(dtype, np.array([x], np.uint32), np.array([y], np.uint32))


@given(F32_WORD, F32_WORD)
def test_two_floats(x: int, y: int) -> None:
    assert word_distance(DType.F32, x, y) == distance(F32, x, y)


@given(WORD, WORD)
def test_two_integers_are_equal_or_not(x: int, y: int) -> None:
    assert word_distance(DType.I32, x, x) == 0
    assert word_distance(DType.I32, x, y) == (0 if x == y else 2**160)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=300))
def test_integers_that_differ_are_counted(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(words, np.uint32) for words in zip(*pairs, strict=True))
    counts = [sum(a != b for a, b in pairs[low : low + 64]) for low in range(0, len(pairs), 64)]
    assert leaf_distances(DType.I32, x, y) == [count * UNEQUAL for count in counts]
    assert tensor_distance(DType.I32, x, y) == sum(counts) * UNEQUAL


def test_the_farthest_floats_of_a_component_are_less_than_one_integer() -> None:
    """2^32 words, each as far apart as two words with a distance can be."""
    assert 2**32 * word_distance(DType.F32, 0x4AFFFFFF, 0xCAFFFFFF) < UNEQUAL


@given(st.lists(st.tuples(F32_WORD, F32_WORD), min_size=1, max_size=300))
def test_leaves_and_tensors_add_up(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(words, np.uint32) for words in zip(*pairs, strict=True))
    expected = [
        saturating_sum(distance(F32, a, b) for a, b in pairs[low : low + 64]) for low in range(0, len(pairs), 64)
    ]
    assert leaf_distances(DType.F32, x, y) == expected
    assert tensor_distance(DType.F32, x, y) == saturating_sum(expected)


def test_the_largest_finite_distance_is_exact_over_many_elements() -> None:
    count = (1 << 18) + 77  # more than one block, and a last leaf that isn't full
    x = np.full(count, 0x4AFFFFFF, np.uint32)  # the largest binary32 below 2^23
    y = np.full(count, 0xCAFFFFFF, np.uint32)
    one = distance(F32, 0x4AFFFFFF, 0xCAFFFFFF)
    assert one < 2**128
    assert tensor_distance(DType.F32, x, y) == count * one
    leaves = leaf_distances(DType.F32, x, y)
    assert len(leaves) == -(-count // 64)
    assert leaves[0] == 64 * one
    assert leaves[-1] == (count % 64) * one


def test_random_tensors_in_any_order() -> None:
    random = np.random.default_rng(7)
    x, y = random.standard_normal((2, 5000), np.float32)
    d = tensor_distance(DType.F32, x.view(np.uint32), y.view(np.uint32))
    order = random.permutation(5000)
    assert tensor_distance(DType.F32, x[order].view(np.uint32), y[order].view(np.uint32)) == d
    assert d == sum(distance(F32, int(a), int(b)) for a, b in zip(x.view(np.uint32), y.view(np.uint32), strict=True))


@pytest.mark.parametrize("bad", [0x7FC00000, 0x7F800000, 0xFF800000, 0x4B000000])
def test_one_bad_word_makes_everything_infinite(bad: int) -> None:
    x = np.zeros(1000, np.uint32)
    y = x.copy()
    y[777] = bad
    assert tensor_distance(DType.F32, x, y) == INFINITE
    # A NaN isn't near itself either; all else is no way from itself.
    assert tensor_distance(DType.F32, y, y) == (INFINITE if bad == 0x7FC00000 else 0)
    leaves = leaf_distances(DType.F32, x, y)
    assert [i for i, d in enumerate(leaves) if d] == [777 // 64]


def test_sums_saturate() -> None:
    assert saturating_sum([]) == 0
    assert saturating_sum([SATURATION - 2, 1]) == SATURATION - 1
    assert saturating_sum([SATURATION - 1, 1]) == INFINITE
    assert saturating_sum([0, INFINITE, 0]) == INFINITE


def test_scalars_have_one_leaf() -> None:
    assert leaf_distances(DType.F32, np.array(0x3F800000, np.uint32), np.array(0, np.uint32)) == [2**80]


def test_shapes_must_agree() -> None:
    with pytest.raises(ProtocolError, match="no distance"):
        tensor_distance(DType.F32, np.zeros((2, 3), np.uint32), np.zeros((3, 2), np.uint32))
    with pytest.raises(ProtocolError, match="no distance"):
        leaf_distances(DType.F32, np.zeros(3, np.uint32), np.zeros(3, np.float32))
