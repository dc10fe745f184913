"""How far two tensors are apart, against NumPy and torch in double precision, and at the edges of the formats."""

import math

import numpy as np
import pytest
import torch

from pol.commitments.array import Array, ArrayType, ElementType
from pol.errors import ProtocolError
from pol.training.state.tensors import DTYPES, of_tensor
from pol.verification.runs.tensor_comparison import BLOCK, TensorDistance, measure_difference, values_of

pytestmark = pytest.mark.rules

INF, NAN = math.inf, math.nan


def array(values: object, dtype: torch.dtype = torch.float32) -> Array:
    return of_tensor(torch.tensor(values, dtype=dtype), "x")


def distance(a: Array, b: Array, block: int = BLOCK) -> TensorDistance:
    pieces = []
    for side in (a, b):
        size = block * side.type.element.size
        pieces.append([side.data[first : first + size] for first in range(0, side.data.size, size)])
    return measure_difference(a.type, b.type, zip(*pieces, strict=True))


@pytest.mark.parametrize("block", [7, BLOCK])
def test_norms_are_those_of_numpy(block: int) -> None:
    draw = np.random.default_rng(0)
    a = draw.standard_normal((13, 11)).astype(np.float32)
    b = np.where(draw.random(a.shape) < 0.3, a + draw.standard_normal(a.shape).astype(np.float32), a)
    gap = a.astype(np.float64) - b.astype(np.float64)
    found = distance(of_tensor(torch.from_numpy(a), "a"), of_tensor(torch.from_numpy(b), "b"), block)
    assert found.differing == np.count_nonzero(a != b)
    assert found.l2 == pytest.approx(np.linalg.norm(gap), rel=1e-14)
    assert found.linf == np.abs(gap).max()
    assert found.relative == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(a.astype(np.float64)), rel=1e-14)
    assert found.position == np.unravel_index(np.abs(gap).argmax(), a.shape)


@pytest.mark.parametrize(
    ("a", "b", "differing", "l2", "relative"),
    [
        ([0.0, 1.0], [-0.0, 1.0], 1, 0.0, 0.0),
        ([INF, 1.0], [INF, 1.0], 0, 0.0, 0.0),
        ([INF, 1.0], [-INF, 1.0], 1, INF, INF),
        ([NAN, 1.0], [NAN, 1.0], 0, 0.0, 0.0),
        ([NAN, 1.0], [1.0, 1.0], 1, INF, INF),
        ([0.0, 0.0], [0.0, 1.0], 1, 1.0, INF),
        ([], [], 0, 0.0, 0.0),
    ],
)
def test_what_is_not_a_plain_number(a: list[float], b: list[float], differing: int, l2: float, relative: float) -> None:
    found = distance(array(a), array(b))
    assert (found.differing, found.l2, found.relative) == (differing, l2, relative)
    assert (found.position is None) == (differing == 0)


def test_great_and_small_numbers_neither_overflow_nor_vanish() -> None:
    found = distance(array([3e300, 4e300], torch.float64), array([0.0, 0.0], torch.float64))
    assert (found.l2, found.relative) == (pytest.approx(5e300), pytest.approx(1.0))
    found = distance(array([3e-310, 4e-310], torch.float64), array([0.0, 0.0], torch.float64))
    assert found.l2 == pytest.approx(5e-310)


@pytest.mark.parametrize(
    ("a", "b", "dtype", "linf"),
    [
        (-(1 << 63), (1 << 63) - 1, torch.int64, float((1 << 64) - 1)),
        ((1 << 62) + 1, 1 << 62, torch.int64, 1.0),
        (0, (1 << 64) - 1, torch.uint64, float((1 << 64) - 1)),
        (-128, 127, torch.int8, 255.0),
        (False, True, torch.bool, 1.0),
        (1 + 1j, 1 - 2j, torch.complex64, 3.0),
    ],
)
def test_integers_are_compared_exactly(a: complex, b: complex, dtype: torch.dtype, linf: float) -> None:
    found = distance(array([a], dtype), array([b], dtype))
    assert (found.linf, found.differing, found.values) == (linf, 1, (a, b))


@pytest.mark.parametrize("element", [e for e in ElementType if e.name.startswith(("F8", "BF", "F16"))])
def test_all_values_of_short_formats_are_those_of_torch(element: ElementType) -> None:
    codes = np.arange(1 << 8 * element.size, dtype=f"<u{element.size}").view(np.uint8)
    found = values_of(element, codes)
    expected = torch.from_numpy(codes.copy()).view(DTYPES[element]).to(torch.float32).numpy()
    assert np.array_equal(found, expected, equal_nan=True)


def test_a_tensor_and_its_rounded_copy_are_compared_as_numbers() -> None:
    wide = torch.tensor([1.0, 1.001, NAN])
    found = distance(of_tensor(wide, "a"), of_tensor(wide.to(torch.bfloat16), "b"))
    assert (found.differing, found.position) == (1, (1,))
    assert found.linf == pytest.approx(0.001, rel=1e-3)


def test_data_at_an_odd_address() -> None:
    buffer = np.zeros(17, np.uint8)
    buffer[1:] = np.frombuffer(np.array([1, 2, 3, 4], np.float32).tobytes(), np.uint8)
    odd = Array(ArrayType(ElementType.F32, (4,)), buffer[1:])
    assert distance(odd, array([1.0, 2.0, 3.0, 5.0])).linf == 1.0


def test_shapes_that_differ_have_no_distance() -> None:
    with pytest.raises(ProtocolError, match="no distance between the shapes"):
        distance(array([1.0]), array([[1.0]]))
