"""Whole numbers and bits: one map."""

from __future__ import annotations

import operator
from math import frexp, isfinite

from pol.arithmetic.primitives import MAGNITUDE
from pol.arithmetic.registers import (
    Float,
    Word,
    fma,
    high_product,
    is_number,
    moved,
    nearest,
    select,
    shifted_with_sign,
)
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import GATES, elementwise
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType

BITS = 22
"""Of a quotient that one round takes off: its estimate errs by less than a quarter."""
MOST_ROUNDS = 13
"""The greatest number over the least has 277 bits before its point."""
_SIGN = 1 << 31


def rounds_for(divisor: float) -> int:
    """Rounds that suffice for every dividend, of a divisor that is a number of the program."""
    if not isfinite(divisor) or divisor == 0:
        return 1
    # The greatest number is below 2^128, and the divisor at least 2^(exponent - 1).
    return min(MOST_ROUNDS, max(1, -(-(129 - frexp(divisor)[1]) // BITS)))


def exact_rest(a: Float, b: Float, rounds: int = MOST_ROUNDS) -> Float:
    """fmod(a, b): a - trunc(a / b) * b, exactly, with the sign of a; NaN for b = 0 and infinite a.

    From the greatest multiple 2^(22 k) * b down, the nearest whole quotient q of at most 22 bits is taken off. The rest
    r - q * m is a multiple of the last place of m and below m, so it is a binary32 number and FFMA gives it exactly.
    A multiple that is infinite is above every r, and takes nothing off.
    """
    size = abs(b)
    multiples = [size]
    factor = b.real(2.0**BITS)
    for _ in range(rounds - 1):
        multiples.append(multiples[-1] * factor)
    rest = abs(a)
    for multiple in reversed(multiples):
        quotient = nearest(rest / multiple)
        less = fma(-quotient, multiple, rest)
        rest = select(quotient == 0.0, rest, less)
    # The nearest quotient may have been one too many.
    rest = select(rest < 0.0, rest + size, rest)
    is_there = is_number(rest)
    signed = (rest.bits & int(MAGNITUDE)) | (a.bits & _SIGN)
    return select(is_there, signed.number, rest)


def _crosses(rest: Float, b: Float) -> Word:
    """1 where the rest isn't zero and has another sign than the divisor."""
    signs = (rest < 0.0) ^ (b < 0.0)
    return select(rest == 0.0, 0, signs)


def floor_rest(a: Float, b: Float, rounds: int = MOST_ROUNDS) -> Float:
    """a % b, with the sign of b: the exact rest, plus b where their signs differ (rounded once)."""
    rest = exact_rest(a, b, rounds)
    return select(_crosses(rest, b), rest + b, rest)


def floor_quotient(a: Float, b: Float, rounds: int = MOST_ROUNDS) -> Float:
    """a // b: the whole number nearest to (a - fmod(a, b)) / b, less one where the rest crosses zero.

    Where b is zero it is a / b; where it is zero it has the sign of a / b.
    """
    zero, one = a.real(0.0), a.real(1.0)
    plain = a / b
    rest = exact_rest(a, b, rounds)
    quotient = (a - rest) / b
    quotient = select(_crosses(rest, b), quotient - one, quotient)
    # Rounded down, then up again where more than a half is left.
    whole = nearest(quotient)
    low = select(quotient < whole, whole - one, whole)
    is_above = (quotient - low) > 0.5
    whole = select(is_above, low + one, low)
    signed_zero = (plain.bits & _SIGN).number
    whole = select(quotient == zero, signed_zero, whole)
    return select(b == zero, plain, whole)


def quotient_and_rest(x: Word, divisor: int) -> tuple[Word, Word]:
    """x // divisor and x % divisor, for 0 <= x < 2^31 and a positive divisor below 2^31."""
    if divisor == 1:
        return moved(x), x.word(0)
    # The high half of x * ceil(2^32 / d) is the quotient or one more.
    estimate = high_product(x, -(-(2**32) // divisor))
    rest = x - estimate * divisor
    over = rest < 0
    quotient = estimate - over
    return quotient, select(over, rest + divisor, rest)


def floored(x: Word, divisor: int) -> tuple[Word, Word]:
    """Quotient rounded down and its rest (not negative), for any i32 except -2^31 and a positive divisor."""
    negative = x < 0
    # Of a negative x: -((-x + d - 1) // d) rounds down; -x - 1, all bits turned, keeps the argument in range.
    size = select(negative, x ^ -1, x)
    quotient, _ = quotient_and_rest(size, divisor)
    result = select(negative, quotient ^ -1, quotient)
    return result, x - result * divisor


def rounded_down(x: Float) -> Float:
    """x rounded down; infinities and NaN stay."""
    whole = nearest(x)
    return select(x < whole, whole - 1.0, whole)


def rounded_up(x: Float) -> Float:
    """x rounded up; infinities and NaN stay."""
    return -rounded_down(-x)


def without_fraction(x: Float) -> Float:
    """x rounded towards zero."""
    return select(x < 0.0, rounded_up(x), rounded_down(x))


_ROUNDINGS = {"floor": rounded_down, "ceil": rounded_up, "trunc": without_fraction, "round": nearest}


@lowers("aten.floor.default", defines="FRINT, less 1 where that is above x")
@lowers("aten.ceil.default", defines="-floor(-x)")
@lowers("aten.trunc.default", defines="ceil below 0, else floor")
@lowers("aten.round.default", defines="FRINT; no decimals")
def _rounded(call: Call) -> Value:
    """Integers stay as they are."""
    formula = _ROUNDINGS[call.node.operation.split(".")[1]]
    return elementwise(call, [call.tensor(0)], formula) if call.dtype is DType.F32 else call.tensor(0)


@lowers(
    "aten.floor_divide.default",
    defines="(a - fmod(a, b)) / b to the whole number below, as torch; integers: by a positive number",
)
def _floor_divide(call: Call) -> Value:
    if call.dtype is not DType.F32:
        divisor = _positive_divisor(call)
        return elementwise(call, [call.tensor(0)], lambda x: floored(x, divisor)[0])
    rounds = _rounds(call)
    return elementwise(call, [call.operand(0), call.operand(1)], lambda a, b: floor_quotient(a, b, rounds))


@lowers(
    "aten.remainder.Scalar",
    "aten.remainder.Tensor",
    defines="fmod(a, b), plus b where their signs differ; integers: by a positive number",
)
def _remainder(call: Call) -> Value:
    if call.dtype is not DType.F32:
        divisor = _positive_divisor(call)
        return elementwise(call, [call.tensor(0)], lambda x: floored(x, divisor)[1])
    rounds = _rounds(call)
    return elementwise(call, [call.operand(0), call.operand(1)], lambda a, b: floor_rest(a, b, rounds))


def _positive_divisor(call: Call) -> int:
    divisor = call.argument(1)
    if type(divisor) is not int or not 0 < divisor < 2**31:
        raise call.unsupported("integers are divided only by a positive integer number")
    return divisor


@lowers(
    "aten.fmod.Scalar",
    "aten.fmod.Tensor",
    defines="the exact rest: 13 rounds (a known divisor: fewer) of FFMA(-q, 2^(22 k) |b|, r), float32 only",
)
def _fmod(call: Call) -> Value:
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 results are defined; of integers write torch.remainder")
    rounds = _rounds(call)
    return elementwise(call, [call.operand(0), call.operand(1)], lambda a, b: exact_rest(a, b, rounds))


def _rounds(call: Call) -> int:
    """How many rounds the rest takes: fewer for a divisor that is known."""
    divisor = call.argument(1)
    return rounds_for(float(divisor)) if isinstance(divisor, int | float) else MOST_ROUNDS


@lowers(
    "aten.div.Tensor_mode",
    "aten.div.Scalar_mode",
    defines="floor: as floor_divide; trunc: FDIV, truncated; integers: floor by a positive number",
)
def _divide_in_mode(call: Call) -> Value:
    mode = call.argument(2, "rounding_mode")
    if mode == "floor":
        return _floor_divide(call)
    if call.dtype is not DType.F32 or mode not in {"trunc", None}:
        raise call.unsupported("integers are divided with rounding_mode='floor'")

    def formula(a: Float, b: Float) -> Float:
        return a / b if mode is None else without_fraction(a / b)

    return elementwise(call, [call.operand(0), call.operand(1)], formula)


_BITWISE = {**GATES, "left_shift": operator.lshift, "right_shift": shifted_with_sign}


@lowers("aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar", defines="AND; booleans and integers")
@lowers("aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar", defines="OR; booleans and integers")
@lowers("aten.bitwise_xor.Tensor", defines="XOR; booleans and integers")
@lowers("aten.bitwise_left_shift.Tensor", defines="SHL; integers")
@lowers("aten.bitwise_right_shift.Tensor", defines="SAR; integers")
def _bitwise(call: Call) -> Value:
    """Bit by bit; of booleans that is the logical operation."""
    if call.dtype is DType.F32:
        raise call.unsupported("the operands must be booleans or integers; compare with zero first")
    return elementwise(call, [call.operand(0), call.operand(1)], _BITWISE[call.node.operation[13:].split(".")[0]])


@lowers("aten.bitwise_not.default", defines="XOR with all bits; booleans: with 1")
def _bitwise_not(call: Call) -> Value:
    if call.dtype is DType.F32:
        raise call.unsupported("the operand must be boolean or an integer; compare with zero first")
    mask = 1 if call.torch_dtype(0) == "bool" else -1
    return elementwise(call, [call.tensor(0)], lambda x: x ^ mask)
