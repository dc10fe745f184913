"""The sweep over all words finds faults, and (slow) finds none."""

import math

import numpy as np
import pytest

from lab.arithmetic.exhaustive import PARTS, Sweep, Sweeper, errors
from lab.arithmetic.measure import DEFINITIONS, document, sweep
from pol.arithmetic.functions import CATALOGUE, tanh
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

ONE_NUMBER = [name for name in CATALOGUE if CATALOGUE[name]().inputs == 1]


def test_a_part_finds_what_numpy_finds() -> None:
    first, count = 0x3F3FF000, 100_000
    x = np.arange(first, first + count, dtype=np.uint32)
    x = np.concatenate([x, x | SIGN])
    result = run(tanh(), [x])
    found = errors(result, np.tanh(x.view(np.float32).astype(np.float64)))
    part = Sweeper(tanh(), np.tanh, 1).part(first, first + count)
    assert part.error == pytest.approx(found.max(), abs=1e-6)
    assert found[np.flatnonzero(x == part.worst)[0]] == pytest.approx(found.max(), abs=1e-6)
    values = result[:count].view(np.float32)
    assert part.steps_back == 2 * np.count_nonzero(values[1:] < values[:-1])
    assert (part.odd_breaks, part.even_breaks, part.foreign_nans) == (0, count, 0)


def faulty(at: int, word: int) -> ScalarProgram:
    """The identity but for one word."""
    b = Builder(1)
    x = b.input(0)
    return b.build(b.emit(Op.SELECT, b.emit(Op.EQ, x, b.const(at)), b.const(word), x))


@pytest.mark.parametrize(
    ("at", "word", "expected"),
    [
        (0x40000010, 0x4000000C, Sweep(4.0, 0x40000010, 1, 3, 1, 5000, 0)),
        (0xC0000010, 0xC0000017, Sweep(7.0, 0xC0000010, 1, 6, 1, 5000, 0)),
        (0x40000010, 0x7FC00000, Sweep(math.inf, 0x40000010, 0, 0, 1, 5000, 0)),
        (0x40000010, 0x7FC00001, Sweep(math.inf, 0x40000010, 0, 0, 1, 5000, 1)),
        (0x40000010, 0x7F800000, Sweep(math.inf, 0x40000010, 1, 0x3F7FFFEF, 1, 5000, 0)),
    ],
)
def test_one_wrong_word_is_found(at: int, word: int, expected: Sweep) -> None:
    assert Sweeper(faulty(at, word), lambda x: x, 1).part(0x40000000, 0x40000000 + 5000) == expected


def test_rows_that_are_not_measured_stay() -> None:
    earlier = "".join(f"| {name} | as measured |\n" for name in CATALOGUE)
    text = document([], earlier)
    assert earlier in text
    with pytest.raises(ValueError, match="erf, exp"):
        document([], earlier.replace("| erf |", "| ? |").replace("| exp |", "| ? |"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ONE_NUMBER)
def test_all_words(name: str) -> None:
    definition = DEFINITIONS[name]
    steps = []
    found = sweep(name, advance=lambda: steps.append(1))
    assert len(steps) == PARTS
    assert found.error <= definition.promise, hex(found.worst)
    assert found.foreign_nans == 0
    assert definition.symmetry != "odd" or found.odd_breaks == 0
    assert definition.symmetry != "even" or found.even_breaks == 0
    assert found.furthest_back <= 2
