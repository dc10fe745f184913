"""Formulas: `rstd * (g - fma(x - mean, slope, mean_g))` on registers writes the instructions of a scalar program.

The instructions stand in the order in which Python evaluates the formula: operands from left to right, then what joins
them. A plain number beside a register is a constant. Both orders are part of the program's bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, NoReturn, TypeVar, overload

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.errors import ProtocolError

_WORDS = 1 << 32


class WideIntegerError(ProtocolError):
    """A number of the step that no word of 32 bits holds."""


class Register:
    """A word that a scalar program computes; its class says how operators read it."""

    def __init__(self, builder: Builder, handle: int) -> None:
        self.builder = builder
        self.handle = handle

    @property
    def bits(self) -> Word:
        """The same word as an integer."""
        return Word(self.builder, self.handle)

    @property
    def number(self) -> Float:
        """The same word as a binary32 number."""
        return Float(self.builder, self.handle)

    def word(self, value: int) -> Word:
        """An integer as a constant of the same program."""
        return Word(self.builder, self.bits.constant(value))

    def pattern(self, bits: int) -> Word:
        """A word as a constant of the same program, by its 32 bits."""
        return Word(self.builder, self.builder.const(bits))

    def real(self, value: float) -> Float:
        """A binary32 number as a constant of the same program."""
        return Float(self.builder, self.builder.f32(value))

    def constant(self, value: float) -> int:
        """Handle of a plain number beside this register."""
        raise NotImplementedError  # each class has its own

    def handle_of(self, operand: Register | float) -> int:
        """Handle of an operand beside this register; TypeError for one of the other class."""
        if not isinstance(operand, Register):
            return self.constant(operand)
        if type(operand) is not type(self):
            raise TypeError(f"{type(self).__name__} and {type(operand).__name__} have no common operation")
        return operand.handle

    def __bool__(self) -> NoReturn:
        raise TypeError("a program has no branches: use select")


class Float(Register):
    """A binary32 number. Comparisons give 1 or 0; a NaN is unequal to everything, and neither less nor greater."""

    __hash__ = None  # type: ignore[assignment]  # == writes an instruction

    def constant(self, value: float) -> int:
        """Of the nearest binary32 number."""
        return self.builder.f32(value)

    def __add__(self, other: Float | float) -> Float:
        return _float(Op.FADD, self, other)

    def __radd__(self, other: float) -> Float:
        return _float(Op.FADD, other, self)

    def __sub__(self, other: Float | float) -> Float:
        return _float(Op.FSUB, self, other)

    def __rsub__(self, other: float) -> Float:
        return _float(Op.FSUB, other, self)

    def __mul__(self, other: Float | float) -> Float:
        return _float(Op.FMUL, self, other)

    def __rmul__(self, other: float) -> Float:
        return _float(Op.FMUL, other, self)

    def __truediv__(self, other: Float | float) -> Float:
        return _float(Op.FDIV, self, other)

    def __rtruediv__(self, other: float) -> Float:
        return _float(Op.FDIV, other, self)

    def __neg__(self) -> Float:
        return _float(Op.FNEG, self)

    def __abs__(self) -> Float:
        return _float(Op.FABS, self)

    def __eq__(self, other: Float | float) -> Word:  # type: ignore[override]  # an instruction
        return _float(Op.FEQ, self, other).bits

    def __ne__(self, other: Float | float) -> Word:  # type: ignore[override]  # an instruction
        return (self == other) ^ 1

    def __lt__(self, other: Float | float) -> Word:
        return _float(Op.FLT, self, other).bits

    def __le__(self, other: Float | float) -> Word:
        return _float(Op.FLE, self, other).bits

    def __gt__(self, other: Float | float) -> Word:
        return _float(Op.FLT, other, self).bits

    def __ge__(self, other: Float | float) -> Word:
        return _float(Op.FLE, other, self).bits


class Word(Register):
    """An integer of 32 bits modulo 2^32. `<` and `<=` compare with sign, `below` without; `>>` fills with zeros."""

    __hash__ = None  # type: ignore[assignment]  # == writes an instruction

    def constant(self, value: float) -> int:
        """Of an i32; WideIntegerError for others."""
        if not isinstance(value, int):
            raise TypeError(f"{value!r} is no integer")
        if not -_WORDS // 2 <= value < _WORDS // 2:
            raise WideIntegerError(f"the integer {value} does not fit in 32 bits: write a smaller one, or a float")
        return self.builder.const(value % _WORDS)

    def __add__(self, other: Word | int) -> Word:
        return _word(Op.ADD, self, other)

    def __radd__(self, other: int) -> Word:
        return _word(Op.ADD, other, self)

    def __sub__(self, other: Word | int) -> Word:
        return _word(Op.SUB, self, other)

    def __rsub__(self, other: int) -> Word:
        return _word(Op.SUB, other, self)

    def __mul__(self, other: Word | int) -> Word:
        return _word(Op.MUL, self, other)

    def __neg__(self) -> Word:
        return 0 - self

    def __abs__(self) -> Word:
        return select(self < 0, -self, self)

    def __and__(self, mask: Word | int) -> Word:
        return _word(Op.AND, self, _unsigned(mask))

    def __or__(self, mask: Word | int) -> Word:
        return _word(Op.OR, self, _unsigned(mask))

    def __xor__(self, mask: Word | int) -> Word:
        return _word(Op.XOR, self, _unsigned(mask))

    def __lshift__(self, count: Word | int) -> Word:
        return _word(Op.SHL, self, count)

    def __rshift__(self, count: Word | int) -> Word:
        return _word(Op.SHR, self, count)

    def __eq__(self, other: Word | int) -> Word:  # type: ignore[override]  # an instruction
        return _word(Op.EQ, self, other)

    def __ne__(self, other: Word | int) -> Word:  # type: ignore[override]  # an instruction
        return (self == other) ^ 1

    def __lt__(self, other: Word | int) -> Word:
        return _word(Op.LTS, self, other)

    def __le__(self, other: Word | int) -> Word:
        return (self > other) ^ 1

    def __gt__(self, other: Word | int) -> Word:
        return _word(Op.LTS, other, self)

    def __ge__(self, other: Word | int) -> Word:
        return (self < other) ^ 1


R = TypeVar("R", Float, Word)


def _unsigned(operand: Word | int) -> Word | int:
    """An operand of an operation on bits: words above 2^31 are written as they are."""
    return operand - _WORDS if isinstance(operand, int) and _WORDS // 2 <= operand < _WORDS else operand


def _first(*operands: Register | float) -> Register:
    """The register that says how plain numbers beside it are read."""
    for operand in operands:
        if isinstance(operand, Register):
            return operand
    raise TypeError("one operand has to be a register: write register.word(...) or register.real(...)")


def _emitted(op: Op, operands: Sequence[Register | float], kind: type[R]) -> R:
    first = _first(*operands)
    handles = [first.handle_of(operand) for operand in operands]
    if not isinstance(first, kind):
        raise TypeError(f"{op.name} does not take a {type(first).__name__}")
    return kind(first.builder, first.builder.emit(op, *handles))


def _float(op: Op, *operands: Float | float) -> Float:
    return _emitted(op, operands, Float)


def _word(op: Op, *operands: Word | int) -> Word:
    return _emitted(op, operands, Word)


def fma(a: Float | float, b: Float | float, c: Float | float) -> Float:
    """a * b + c, rounded once."""
    return _float(Op.FFMA, a, b, c)


def sqrt(x: Float) -> Float:
    """Square root, correctly rounded."""
    return _float(Op.FSQRT, x)


def minimum(a: Float | float, b: Float | float) -> Float:
    """The smaller one; a NaN wins."""
    return _float(Op.FMIN, a, b)


def maximum(a: Float | float, b: Float | float) -> Float:
    """The greater one; a NaN wins."""
    return _float(Op.FMAX, a, b)


def nearest(x: Float) -> Float:
    """The nearest whole number, ties to even."""
    return _float(Op.FRINT, x)


def is_number(x: Float) -> Word:
    """1 unless x is NaN."""
    return x == x  # noqa: PLR0124  # only a NaN is unequal to itself


def rounded_to_bfloat16(x: Float) -> Float:
    """The nearest bfloat16 number, ties to even."""
    return _float(Op.RBF16, x)


def to_float(word: Word) -> Float:
    """The nearest binary32 number to an i32."""
    return _word(Op.I2F, word).number


def to_word(x: Float) -> Word:
    """x without its fraction, as an i32."""
    return _float(Op.F2I, x).bits


def high_product(a: Word, b: Word | int) -> Word:
    """The upper 32 bits of the product of two words without sign."""
    return _word(Op.MULHI, a, _unsigned(b))


def below(a: Word, b: Word | int) -> Word:
    """1 where a < b, both without sign: for 0 <= b < 2^31 this is 0 <= a < b."""
    return _word(Op.LTU, a, _unsigned(b))


def shifted_with_sign(a: Word, count: Word | int) -> Word:
    """a >> count, filled with its sign."""
    return _word(Op.SAR, a, count)


def select(condition: Word, yes: R | float, no: R | float) -> R:
    """`yes` where the condition isn't zero, else `no`."""
    first = _first(yes, no)
    if not isinstance(condition, Word):
        raise TypeError("a condition is an integer")
    handles = [first.handle_of(operand) for operand in (yes, no)]
    chosen = first.builder.emit(Op.SELECT, condition.handle, *handles)
    return type(first)(first.builder, chosen)  # type: ignore[return-value]  # the class of yes and no


def moved(word: R) -> R:
    """The same word in a register of its own."""
    return type(word)(word.builder, word.builder.emit(Op.MOV, word.handle))


def polynomial(x: Float, coefficients: Sequence[int]) -> Float:
    """By Horner's scheme from the highest power down, fused; the coefficients are words of binary32 numbers."""
    return Float(x.builder, x.builder.polynomial(x.handle, coefficients))


def program_of(formula: Callable[..., Register], *kinds: type[Register]) -> ScalarProgram:
    """The program of a formula whose parameters are the inputs, read as the kinds say."""
    builder = Builder(len(kinds))
    inputs = [kind(builder, builder.input(place)) for place, kind in enumerate(kinds)]
    return builder.build(formula(*inputs).handle)


class Function(Generic[R]):
    """A named formula: `exp(x)` writes its program out in place, `exp()` is that program.

    Its parameters are annotated as Float or Word.
    """

    def __init__(self, formula: Callable[..., R]) -> None:
        self.__name__ = formula.__name__
        self.__doc__ = formula.__doc__
        self._formula: Callable[..., R] = formula
        annotations = inspect.get_annotations(formula, eval_str=True)
        self._result: type[R] = annotations.pop("return")
        self._kinds: list[type[Register]] = list(annotations.values())

    @cached_property
    def program(self) -> ScalarProgram:
        """The program of the formula."""
        return program_of(self._formula, *self._kinds)

    @overload
    def __call__(self) -> ScalarProgram: ...

    @overload
    def __call__(self, *operands: Register) -> R: ...

    def __call__(self, *operands: Register) -> R | ScalarProgram:
        """On registers the result of the program, else the program; TypeError for registers of the other class."""
        if not operands:
            return self.program
        if [type(operand) for operand in operands] != self._kinds:
            raise TypeError(f"{self.__name__} takes other registers")
        builder = operands[0].builder
        handle = builder.call(self.program, *(operand.handle for operand in operands))
        return self._result(builder, handle)
