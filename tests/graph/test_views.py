"""Views compose like NumPy's, and what strides cannot say is refused, not guessed."""

import random

import numpy as np
import pytest

from pol.errors import ProtocolError
from pol.graph.lowering.values import (
    Fill,
    StepNumber,
    Value,
    View,
    at_index,
    cut,
    expand,
    float_word,
    integer_word,
    permute,
    reshape,
    squeeze,
    unsqueeze,
    whole_view,
)
from pol.graph.node import Source
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.rules


def shown(view: View, words: np.ndarray) -> np.ndarray:
    """What a view shows, by its definition."""
    result = np.empty(view.shape, words.dtype)
    for place in np.ndindex(*view.shape):
        result[place] = words[view.base + sum(s * c for s, c in zip(view.strides, place, strict=True))]
    return result


def mutated(generator: random.Random, value: Value, array: np.ndarray) -> tuple[Value | None, np.ndarray]:
    """One random view operation on both."""
    rank = array.ndim
    kind = generator.choice(("permute", "expand", "unsqueeze", "squeeze", "select", "cut", "reshape"))
    if kind == "permute":
        order = generator.sample(range(rank), rank)
        return permute(value, order), array.transpose(order)
    if kind == "expand" and rank < 5:
        shape = tuple(generator.choice((2, 3)) if size == 1 else size for size in (1, *array.shape))
        return expand(value, shape), np.broadcast_to(array, shape)
    if kind == "unsqueeze" and rank < 6:
        axis = generator.randrange(rank + 1)
        return unsqueeze(value, axis), np.expand_dims(array, axis)
    if kind == "squeeze":
        return squeeze(value, range(rank)), array.squeeze()
    if kind == "select" and rank > 1:
        axis = generator.randrange(rank)
        index = generator.randrange(array.shape[axis])
        return at_index(value, axis, index), array.take(index, axis)
    if kind == "cut" and rank:
        axis = generator.randrange(rank)
        start = generator.randrange(array.shape[axis])
        stop = generator.randrange(start + 1, array.shape[axis] + 1)
        step = generator.choice((1, 1, 2))
        place = (*[slice(None)] * axis, slice(start, stop, step))
        return cut(value, axis, start, stop, step), array[place]
    sizes = [size for whole in array.shape for size in factors(whole)]
    generator.shuffle(sizes)
    shape = tuple(sizes[:5]) if len(sizes) <= 5 else (array.size,)
    return reshape(value, shape), array.reshape(shape)


def factors(number: int) -> list[int]:
    for divisor in (2, 3, 5):
        if number % divisor == 0:
            return [divisor, *factors(number // divisor)]
    return [number] if number > 1 else []


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_agree_with_numpy(seed: int) -> None:
    generator = random.Random(seed)
    shape = tuple(generator.choice((1, 2, 3, 4, 6)) for _ in range(generator.randrange(1, 5)))
    words = np.arange(np.prod(shape))
    value: Value = whole_view(Source.STATE, 0, TensorType(DType.F32, shape))
    array = words.reshape(shape)
    for _ in range(8):
        following, shown_next = mutated(generator, value, array)
        if following is None:
            continue
        value, array = following, shown_next
        assert isinstance(value, View)
        assert value.shape == array.shape
        np.testing.assert_array_equal(shown(value, words), array)


def test_reshape_finds_every_strided_view_that_numpy_finds() -> None:
    words = np.arange(24)
    base = whole_view(Source.STATE, 0, TensorType(DType.F32, (2, 3, 4)))
    array = words.reshape(2, 3, 4)
    for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)):
        for shape in ((24,), (6, 4), (4, 6), (2, 12), (3, 2, 2, 2), (2, 3, 2, 2), (12, 2), (4, 2, 3), (3, 8)):
            moved = array.transpose(order)
            result = reshape(permute(base, order), shape)
            assert (result is None) == (not np.shares_memory(moved.reshape(shape), array))


def test_repeated_words_and_the_step_only_change_shape() -> None:
    for value in (Fill(1, DType.F32, (2, 1)), StepNumber((2, 1))):
        assert expand(permute(value, [1, 0]), (3, 2)).shape == (3, 2)
        assert squeeze(value, [1]).shape == (2,)
        seen = reshape(value, (-1,))
        assert seen is not None
        assert seen.shape == (2,)
        assert at_index(value, 0, 1).shape == (1,)
        assert unsqueeze(value, -1).shape == (2, 1, 1)


def test_impossible_views_are_refused() -> None:
    value = whole_view(Source.STATE, 0, TensorType(DType.F32, (2, 3)))
    for attempt in (
        lambda: permute(value, [0, 0]),
        lambda: permute(value, [0, 2]),
        lambda: expand(value, [3, 3]),
        lambda: expand(value, [3]),
        lambda: at_index(value, 1, 3),
        lambda: cut(value, 0, 1, 1),
        lambda: cut(value, 0, 0, 3),
        lambda: cut(value, 0, 0, 2, 0),
        lambda: reshape(value, (4,)),
        lambda: reshape(value, (0, -1)),
        lambda: reshape(value, (-1, -1)),
        lambda: squeeze(value, [2]),
    ):
        with pytest.raises(ProtocolError):
            attempt()


def test_numbers_become_words() -> None:
    assert float_word(0.1) == 0x3DCCCCCD
    assert float_word(float("nan")) == 0x7FC00000
    assert float_word(1e300) == 0x7F800000
    assert integer_word(-1) == 0xFFFFFFFF
    with pytest.raises(ProtocolError):
        integer_word(2**31)
