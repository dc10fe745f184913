"""``%``, ``//`` and fmod of binary32 numbers are those of C, Python and torch, for any two numbers.

The expectation is C's fmod (NumPy calls it), of which torch's formulas for remainder and floor division are made.
Torch's own vectorized fmod gives NaN for quotients beyond some 2^100 and its scalar one doesn't, so torch is asked for
smaller ones.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from pol.arithmetic.interpreter import run
from pol.arithmetic.registers import Float, program_of
from pol.arithmetic.scalar_program import ScalarProgram
from pol.graph.lowering.rules.elements.integers import exact_rest, floor_quotient, floor_rest, rounds_for

Floats = npt.NDArray[np.float32]
SPECIAL = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0x00800000, 0x3F800000], np.uint32)


def drawn(seed: int, count: int) -> Floats:
    """Any words, small multiples of 0.1, and special numbers."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**32, count, dtype=np.uint32)
    tenths = (random.integers(-50, 50, count) * np.float32(0.1)).astype(np.float32).view(np.uint32)
    words = np.where(random.random(count) < 0.5, words, tenths)
    return (
        np.where(random.random(count) < 0.05, random.choice(SPECIAL, count), words).astype(np.uint32).view(np.float32)
    )


def remainder(a: Floats, b: Floats) -> Floats:
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def floored(a: Floats, b: Floats) -> Floats:
    return torch.div(torch.from_numpy(a), torch.from_numpy(b), rounding_mode="floor").numpy()


def fmod(a: Floats, b: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.fmod(a, b)


def program(formula: Callable[..., Float], *rounds: int) -> ScalarProgram:
    return program_of(lambda a, b: formula(a, b, *rounds), Float, Float)


def assert_equal(program: ScalarProgram, a: Floats, b: Floats, expected: Floats) -> None:
    got = run(program, [a.view(np.uint32), b.view(np.uint32)])
    wanted = np.where(np.isnan(expected), np.uint32(0x7FC00000), expected.view(np.uint32))
    wrong = np.nonzero(got != wanted)[0][:5]
    assert not wrong.size, [(a[i], b[i], got.view(np.float32)[i], expected[i]) for i in wrong]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [(exact_rest, fmod), (floor_rest, remainder), (floor_quotient, floored)],
    ids=["fmod", "remainder", "floor"],
)
def test_any_two_numbers(formula: Callable[..., int], expected: Callable[[Floats, Floats], Floats]) -> None:
    a, b = drawn(1, 200_000), drawn(2, 200_000)
    assert_equal(program(formula), a, b, expected(a, b))


@pytest.mark.parametrize("divisor", [0.1, -3.0, 7.5, 1e-30, 3e38, 1e-45, 0.25, 1.1754944e-38])
def test_fewer_rounds_suffice_for_a_known_divisor(divisor: float) -> None:
    a = drawn(3, 50_000)
    b = np.full_like(a, divisor)
    assert_equal(program(exact_rest, rounds_for(float(b[0]))), a, b, fmod(a, b))


def test_one_over_a_tenth_is_nine() -> None:
    one, tenth = np.float32([1.0]), np.float32([0.1])
    assert run(program(floor_quotient), [one.view(np.uint32), tenth.view(np.uint32)]).view(np.float32) == [9.0]
    ordinary = np.linspace(-40, 40, 4001, dtype=np.float32)
    divisors = torch.from_numpy(np.roll(ordinary, 7)[::-1].copy())
    for formula, torchs in (
        (floor_rest, torch.remainder(torch.from_numpy(ordinary), divisors)),
        (exact_rest, torch.fmod(torch.from_numpy(ordinary), divisors)),
    ):
        assert_equal(program(formula), ordinary, divisors.numpy(), torchs.numpy())
