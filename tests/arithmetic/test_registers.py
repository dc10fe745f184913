"""Formulas over registers: every operator writes its primitive, in the order in which Python evaluates."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pol.arithmetic.functions import exp
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import Op
from pol.arithmetic.registers import (
    Float,
    Function,
    Register,
    WideIntegerError,
    Word,
    below,
    fma,
    high_product,
    is_number,
    maximum,
    minimum,
    moved,
    nearest,
    polynomial,
    program_of,
    rounded_to_bfloat16,
    select,
    shifted_with_sign,
    sqrt,
    to_float,
    to_word,
)

pytestmark = pytest.mark.rules

FLOATS: list[tuple[Callable[..., Register], list[Op]]] = [
    (lambda a, b: a + b, [Op.FADD]), (lambda a, b: a - b, [Op.FSUB]), (lambda a, b: a * b, [Op.FMUL]),
    (lambda a, b: a / b, [Op.FDIV]), (lambda a, b: fma(a, b, a), [Op.FFMA]), (minimum, [Op.FMIN]),
    (maximum, [Op.FMAX]), (lambda a, b: sqrt(a), [Op.FSQRT]), (lambda a, b: nearest(a), [Op.FRINT]),
    (lambda a, b: rounded_to_bfloat16(a), [Op.RBF16]), (lambda a, b: abs(a), [Op.FABS]),
    (lambda a, b: -a, [Op.FNEG]), (lambda a, b: a == b, [Op.FEQ]), (lambda a, b: a != b, [Op.FEQ, Op.XOR]),
    (lambda a, b: a < b, [Op.FLT]), (lambda a, b: a <= b, [Op.FLE]), (lambda a, b: is_number(a), [Op.FEQ]),
    (lambda a, b: to_word(a), [Op.F2I]), (lambda a, b: select(a < b, a, b), [Op.FLT, Op.SELECT]),
]  # fmt: skip
WORDS: list[tuple[Callable[..., Register], list[Op]]] = [
    (lambda a, b: a + b, [Op.ADD]), (lambda a, b: a - b, [Op.SUB]), (lambda a, b: a * b, [Op.MUL]),
    (high_product, [Op.MULHI]), (lambda a, b: a & b, [Op.AND]), (lambda a, b: a | b, [Op.OR]),
    (lambda a, b: a ^ b, [Op.XOR]), (lambda a, b: a << b, [Op.SHL]), (lambda a, b: a >> b, [Op.SHR]),
    (shifted_with_sign, [Op.SAR]), (lambda a, b: -a, [Op.SUB]),
    (lambda a, b: abs(a), [Op.LTS, Op.SUB, Op.SELECT]), (lambda a, b: a == b, [Op.EQ]),
    (lambda a, b: a != b, [Op.EQ, Op.XOR]), (lambda a, b: a < b, [Op.LTS]),
    (lambda a, b: a <= b, [Op.LTS, Op.XOR]), (below, [Op.LTU]), (lambda a, b: to_float(a), [Op.I2F]),
    (lambda a, b: moved(a), [Op.MOV]),
]  # fmt: skip


def operations(formula: Callable[..., Register], kind: type[Register]) -> list[Op]:
    return [step.op for step in program_of(formula, kind, kind).instructions]


@pytest.mark.parametrize(("formula", "wanted"), FLOATS)
def test_operators_of_numbers(formula: Callable[..., Register], wanted: list[Op]) -> None:
    assert operations(formula, Float) == wanted


@pytest.mark.parametrize(("formula", "wanted"), WORDS)
def test_operators_of_words(formula: Callable[..., Register], wanted: list[Op]) -> None:
    assert operations(formula, Word) == wanted


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        (lambda x: 10.0 - x, 7.0), (lambda x: 10.0 + x, 13.0), (lambda x: 2.0 * x, 6.0),
        (lambda x: 12.0 / x, 4.0), (lambda x: to_float(x > 2.0), 1.0), (lambda x: to_float(x >= 3.5), 0.0),
        (lambda x: to_float(x < 2.0), 0.0), (lambda x: select(x == 3.0, 5.0, x), 5.0),
        (lambda x: fma(x, 2.0, 0.5), 6.5), (lambda x: polynomial(x, (0x40000000, 0x3F800000)), 7.0),
        (lambda x: x.real(math.nan), math.nan),
    ],
)  # fmt: skip
def test_plain_numbers_are_constants_on_their_side(formula: Callable[[Float], Float], value: float) -> None:
    (word,) = run(program_of(formula, Float), [np.array([3.0], np.float32).view(np.uint32)]).view(np.float32)
    np.testing.assert_equal(float(word), value)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        (lambda x: 10 - x, 13), (lambda x: 10 + x, 7), (lambda x: x * -2, 6), (lambda x: x > -4, 1),
        (lambda x: x >= -2, 0), (lambda x: below(x, 5), 0), (lambda x: x & 0xFFFFFFFF, 2**32 - 3),
        (lambda x: x.pattern(0x80000001), 0x80000001), (lambda x: (x.bits >> 31) << 1, 2),
        (lambda x: shifted_with_sign(x, 31) + 1, 0),
    ],
)  # fmt: skip
def test_plain_integers_are_constants_on_their_side(formula: Callable[[Word], Word], value: int) -> None:
    assert run(program_of(formula, Word), [np.array([2**32 - 3], np.uint32)]).tolist() == [value]


def test_operands_come_from_left_to_right() -> None:
    """What a formula names first is written first, and its constants stand in the same order."""
    program = program_of(lambda x: (x + 1.0) * (x - 2.0), Float)
    assert [step.op for step in program.instructions] == [Op.FADD, Op.FSUB, Op.FMUL]
    assert program.constants == (0x3F800000, 0x40000000)


def test_a_function_is_written_out_in_place_or_alone() -> None:
    @Function
    def twice(x: Float) -> Float:
        """2 e^x."""
        e = exp(x)
        return e + e

    assert twice.__doc__ == "2 e^x."
    assert twice().instructions[:-1] == exp().instructions
    assert twice() is twice()
    assert program_of(twice, Float) == twice()


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, word: x + word, lambda x, word: select(x, word, word), lambda x, word: select(word, x, word),
        lambda x, word: fma(word, word, word), lambda x, word: to_float(x), lambda x, word: exp(word),
        lambda x, word: word + 1.5, lambda x, word: select(word, 1.0, 0.0),
        lambda x, word: x if x < 1.0 else word, lambda x, word: {x: word},
    ],
)  # fmt: skip
def test_words_of_two_kinds_do_not_mix_and_programs_do_not_branch(formula: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        program_of(formula, Float, Word)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_an_integer_of_more_than_32_bits_is_refused(number: int) -> None:
    with pytest.raises(WideIntegerError, match="does not fit"):
        program_of(lambda x: x + number, Word)
