"""An array that lies in several places has the root that it has in one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.commitments.distributed_array import ArrayPart, describe_part, root_of_parts
from pol.errors import ProtocolError


def cut(data: np.ndarray, borders: list[int]) -> list[ArrayPart]:
    edges = [0, *sorted(borders), data.size]
    return [describe_part(a, data[a:b]) for a, b in itertools.pairwise(edges)]


@given(st.data())
def test_any_cut_gives_the_root_of_the_whole(source: st.DataObject) -> None:
    size = source.draw(st.integers(0, 20 * 256) | st.sampled_from([256, 512, 4096, 8192]))
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    near = st.builds(lambda leaf, by: leaf * 256 + by, st.integers(0, size // 256), st.integers(-3, 3))
    borders = source.draw(st.lists(st.integers(0, size) | near.filter(lambda b: 0 <= b <= size), max_size=12))
    type_ = ArrayType(ElementType.U8, (size,))
    parts = cut(data, borders)
    again = source.draw(st.lists(st.sampled_from(parts), max_size=3))  # replicas tell the same again
    shuffled = source.draw(st.permutations(parts + again))
    assert root_of_parts(type_, shuffled) == array_root(Array(type_, data))


def test_a_part_says_little() -> None:
    """A hundred thousand leaves in three parts: a subtree for each power of two on the way up and down."""
    data = np.zeros(25_600_001, np.uint8)
    parts = cut(data, [10_000_001, 20_000_003])
    assert max(len(part.nodes) for part in parts) <= 2 * 17
    assert all(len(part.head) + len(part.tail) < 512 for part in parts)
    type_ = ArrayType(ElementType.U8, (data.size,))
    assert root_of_parts(type_, parts) == array_root(Array(type_, data))


@pytest.mark.parametrize("kept", [[0], [1], [0, 2], []])
def test_a_gap_is_no_array(kept: list[int]) -> None:
    parts = cut(np.ones(1000, np.uint8), [300, 600])
    with pytest.raises(ProtocolError, match="parts of an array"):
        root_of_parts(ArrayType(ElementType.U8, (1000,)), [parts[i] for i in kept])


def test_parts_that_overlap_are_no_array() -> None:
    data = np.ones(1000, np.uint8)
    with pytest.raises(ProtocolError, match="overlap at byte 500"):
        root_of_parts(
            ArrayType(ElementType.U8, (1000,)), [describe_part(0, data[:600]), describe_part(500, data[500:])]
        )
