"""The sweep over all words computes what the interpreter computes, finds faults, and (slow) finds none."""

import math

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import arguments
from lab.arithmetic.exhaustive import PARTS, Sweep, compiled
from lab.arithmetic.measure import DEFINITIONS, document, errors, sweep
from pol.arithmetic.functions import CATALOGUE, tanh
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import ARITY, SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.errors import OperationalError

ONE_NUMBER = [name for name in CATALOGUE if DEFINITIONS[name].native]


def primitives_in_turn() -> list[ScalarProgram]:
    """All primitives on a word and on words that are equal to it, beside it and unrelated, mixed into one word."""
    programs = []
    for start in range(0, len(Op), 12):
        b = Builder(1)
        x = b.input(0)
        unrelated = b.emit(Op.MUL, x, b.const(0x9E3779B1))
        beside = b.emit(Op.ADD, x, b.const(1))
        mixed = x
        for op in list(Op)[start : start + 12]:
            for operands in ((x, x, unrelated), (x, beside, x), (beside, x, unrelated), (unrelated, x, beside)):
                mixed = b.emit(Op.MUL, mixed, b.const(0x85EBCA6B))
                mixed = b.emit(Op.XOR, mixed, b.emit(op, *operands[: ARITY[op]]))
        programs.append(b.build(mixed))
    return programs


@pytest.mark.parametrize("program", primitives_in_turn())
def test_compiled_primitives_have_the_bits_of_the_interpreter(program: ScalarProgram) -> None:
    (words,) = arguments(1, 200_000, seed=7)
    shifts = np.arange(70, dtype=np.uint32)
    x = np.concatenate([words, shifts])
    with compiled(program, "x") as sweeper:
        assert np.array_equal(sweeper.results(x), run(program, [x]))


def test_a_part_finds_what_numpy_finds() -> None:
    first, count = 0x3F3FF000, 100_000
    x = np.arange(first, first + count, dtype=np.uint32)
    x = np.concatenate([x, x | SIGN])
    result = run(tanh(), [x])
    exact = np.tanh(x.view(np.float32).astype(np.float64))
    found = errors(result, exact)
    with compiled(tanh(), "tanh(x)") as sweeper:
        part = sweeper.part(first, first + count, 1, "odd")
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
    with compiled(faulty(at, word), "x") as sweeper:
        assert sweeper.part(0x40000000, 0x40000000 + 5000, 1, "odd") == expected


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OperationalError, match="C\\+\\+ compiler"), compiled(tanh(), "tanh(x)"):
        pass


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
