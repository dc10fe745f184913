"""Metrics for people: right where they are defined, NaN where they aren't, and the sums of the chain."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toy_program
from pol.arithmetic.primitives import Words
from pol.claims import distance
from pol.claims.distance import component_distances
from pol.errors import ProtocolError
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.verification.profile.state_metrics import UNIT, component_metrics, cosine_distance, gaps

pytestmark = pytest.mark.rules

NUMBERS = st.floats(-(2.0**24), 2.0**24, width=32) | st.sampled_from([0.0, 1.0, math.inf, math.nan])
INTEGERS = st.integers(0, 3)
SIZE = 5


def program(scale: int) -> StepProgram:
    """Only the slots matter here: two of parameters, one of them scaled, a counter among the buffers."""
    f32, i32 = TensorType(DType.F32, (SIZE,)), TensorType(DType.I32, (2,))
    slots = (
        Slot(Component.PARAMETER, f32, 0),
        Slot(Component.PARAMETER, f32, 0, scale),
        Slot(Component.BUFFER, i32, 0),
        Slot(Component.OPTIMIZER, i32, 0),
    )
    return StepProgram(slots, (), toy_program.build().nodes)


def state(numbers: list[float], integers: list[int]) -> list[Words]:
    words = np.array(numbers, np.float32).view(np.uint32)
    counts = np.array(integers, np.uint32)
    return [words[:SIZE], words[SIZE:], counts[:2], counts[2:]]


def states() -> st.SearchStrategy[list[Words]]:
    return st.builds(
        state, st.lists(NUMBERS, min_size=2 * SIZE, max_size=2 * SIZE), st.lists(INTEGERS, min_size=4, max_size=4)
    )


def fix(words: Words, scale: int) -> list[int | None]:
    limit = 2 ** (23 - scale)
    values = [float(x) for x in words.view(np.float32)]
    return [int(Fraction(x) * 2 ** (40 + scale)) if abs(x) < limit else None for x in values]


@settings(max_examples=40)
@given(st.sampled_from([0, 12]), states(), states())
def test_norms_are_exact_and_give_the_distances_of_the_chain(scale: int, x: list[Words], y: list[Words]) -> None:
    found = gaps(program(scale), x, y)
    assert tuple(gap.distance for gap in found) == component_distances(program(scale), x, y)
    pairs = [
        (a, b)
        for slot, factor in ((0, 0), (1, scale))
        for a, b in zip(fix(x[slot], factor), fix(y[slot], factor), strict=True)
    ]
    # What is no NaN is no way from itself, however large.
    same = np.concatenate([(x[slot] == y[slot]) & ~np.isnan(x[slot].view(np.float32)) for slot in (0, 1)])
    parts = [
        0 if equal else abs(a - b) for (a, b), equal in zip(pairs, same, strict=True) if equal or None not in (a, b)
    ]
    parameter, buffer, optimizer = found
    assert parameter.elements == 2 * SIZE
    assert parameter.l1 == sum(parts)
    assert parameter.squared == sum(part**2 for part in parts)
    assert parameter.linf == max(parts, default=0)
    assert parameter.infinite == 2 * SIZE - len(parts)
    assert buffer.unequal == np.count_nonzero(x[2] != y[2])
    assert (buffer.elements, buffer.l1, optimizer.squared) == (0, 0, 0)


def test_norms_over_many_blocks() -> None:
    """Larger than what is summed at a time, with numbers near the greatest that have a distance."""
    size = distance.BLOCK + 3
    type_ = TensorType(DType.F32, (size,))
    wide = StepProgram((Slot(Component.PARAMETER, type_, 0),), (), toy_program.build().nodes)
    x = np.full(size, 2.0**23 - 1, np.float32)
    gap = gaps(wide, [x.view(np.uint32)], [(-x).view(np.uint32)])[0]
    each = (2**24 - 2) * 2**40
    assert (gap.l1, gap.squared, gap.linf) == (each * size, each**2 * size, each)


def test_metrics_of_a_triangle() -> None:
    """Updates (3, 4) and (3, 0) from (1, 1)."""
    small = StepProgram((Slot(Component.PARAMETER, TensorType(DType.F32, (2,)), 0),), (), toy_program.build().nodes)
    start, x, y = ([np.array(v, np.float32).view(np.uint32)] for v in ((1, 1), (4, 5), (4, 1)))
    found = component_metrics(small, start, x, y, Component.PARAMETER)
    assert found is not None
    assert (found.elements, found.l1, found.l2, found.linf) == (2, 4.0, 4.0, 4.0)
    assert (found.relative_l1, found.relative_l2, found.relative_linf) == (4 / 7, 0.8, 1.0)
    assert found.cosine == pytest.approx(1 - 0.6, abs=1e-15)
    assert component_metrics(small, start, x, y, Component.BUFFER) is None
    assert UNIT * 2**40 == 1
    undefined = component_metrics(
        small, start, x, [np.array([math.nan, 1], np.float32).view(np.uint32)], Component.PARAMETER
    )
    assert undefined is not None
    assert all(math.isnan(v) for v in (undefined.l1, undefined.l2, undefined.relative_linf, undefined.cosine))
    still = component_metrics(small, start, start, y, Component.PARAMETER)
    assert still is not None
    assert math.isnan(still.relative_l2)
    assert math.isnan(still.cosine)
    with pytest.raises(ProtocolError):
        component_metrics(small, start, x, [*y, *y], Component.PARAMETER)


def cosine_of(u: list[int], v: list[int]) -> float:
    def dot(a: list[int], b: list[int]) -> int:
        return sum(x * y for x, y in zip(a, b, strict=True))

    w = [x - y for x, y in zip(u, v, strict=True)]
    return cosine_distance(dot(u, u), dot(v, v), dot(w, w))


def test_cosine_distance_is_a_distance() -> None:
    w = [3, 4]
    assert cosine_of(w, w) == 0.0
    assert cosine_of(w, [6, 8]) == 0.0  # not -1, as in earlier systems
    assert cosine_of(w, [-3, -4]) == 2.0
    assert cosine_of(w, [-4, 3]) == 1.0
    assert math.isnan(cosine_of(w, [0, 0]))
    # Nearly one direction: 1 - cos is 2^-121, far below what 1.0 minus a float could show.
    assert cosine_of([1 << 60, 0], [1 << 60, 1]) == pytest.approx(2.0**-121, rel=1e-15)


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)), min_size=1, max_size=6))
def test_cosine_distance_against_floating_point(pairs: list[tuple[int, int]]) -> None:
    u, v = [list(side) for side in zip(*pairs, strict=True)]
    a, b = np.array(u, np.float64), np.array(v, np.float64)
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    found = cosine_of(u, v)
    if norms == 0:
        assert math.isnan(found)
    else:
        assert 0.0 <= found <= 2.0
        assert found == pytest.approx(1.0 - float(a @ b) / norms, abs=1e-14)
