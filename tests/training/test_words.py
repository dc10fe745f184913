"""Arrays of every type that has words come back from them; what doesn't fit is refused."""

import numpy as np
import pytest

from pol.commitments.array import Array, ArrayType, ElementType
from pol.errors import ProtocolError
from pol.training.state.words import of_words, to_words

pytestmark = pytest.mark.rules

TYPES = (ElementType.F32, ElementType.I32, ElementType.BF16, ElementType.I64, ElementType.BOOL)


def array(element: ElementType, data: bytes, shape: tuple[int, ...]) -> Array:
    return Array(ArrayType(element, shape), np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("element", TYPES)
def test_there_and_back(element: ElementType) -> None:
    data = np.random.default_rng(1).integers(0, 256, 6 * element.size, np.uint8)
    if element is ElementType.BOOL:
        data &= 1
    if element is ElementType.I64:
        data = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 7], "<i8").view(np.uint8)
    given = array(element, data.tobytes(), (2, 3))
    back = of_words(to_words(given, "x"), element)
    assert back.type == given.type
    assert np.array_equal(back.data, given.data)


def test_words_hold_the_values() -> None:
    half = array(ElementType.BF16, np.array([0x3F80, 0xC000], "<u2").tobytes(), (2,))
    assert to_words(half, "x").view(np.float32).tolist() == [1.0, -2.0]
    integers = array(ElementType.I64, np.array([-5], "<i8").tobytes(), ())
    assert to_words(integers, "x").view(np.int32) == -5
    assert to_words(array(ElementType.BOOL, b"\1\0", (2,)), "x").tolist() == [1, 0]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_integers_that_do_not_fit(number: int) -> None:
    with pytest.raises(ProtocolError, match="counter holds integers"):
        to_words(array(ElementType.I64, np.array([number], "<i8").tobytes(), (1,)), "counter")


def test_types_without_words() -> None:
    with pytest.raises(ProtocolError, match="x has elements of type F64"):
        to_words(array(ElementType.F64, bytes(8), (1,)), "x")
    with pytest.raises(ProtocolError, match="F16 have no words"):
        of_words(np.zeros(1, np.uint32), ElementType.F16)
