"""Rests of divisions of binary32 numbers, exact for all of them, and the quotients that follow.

The definitions are those of C's fmod and of Python's % and //, which torch has for floats, too.
"""

from __future__ import annotations

from math import frexp, isfinite

from pol.arithmetic.primitives import MAGNITUDE, Op
from pol.arithmetic.scalar_program import Builder

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


def exact_rest(b: Builder, dividend: int, divisor: int, rounds: int = MOST_ROUNDS) -> int:
    """Register of fmod(a, b): a - trunc(a / b) * b, exactly, with the sign of a; NaN for b = 0 and infinite a.

    From the greatest multiple 2^(22 k) * b down, the nearest whole quotient q of at most 22 bits is taken off. The rest
    r - q * m is a multiple of the last place of m and below m, so it is a binary32 number and FFMA gives it exactly.
    A multiple that is infinite is above every r, and takes nothing off.
    """
    size = b.emit(Op.FABS, divisor)
    multiples = [size]
    factor = b.f32(2.0**BITS)
    for _ in range(rounds - 1):
        multiples.append(b.emit(Op.FMUL, multiples[-1], factor))
    rest = b.emit(Op.FABS, dividend)
    for multiple in reversed(multiples):
        quotient = b.emit(Op.FRINT, b.emit(Op.FDIV, rest, multiple))
        less = b.emit(Op.FFMA, b.emit(Op.FNEG, quotient), multiple, rest)
        rest = b.emit(Op.SELECT, b.emit(Op.FEQ, quotient, b.f32(0.0)), rest, less)
    # The nearest quotient may have been one too many.
    rest = b.emit(Op.SELECT, b.emit(Op.FLT, rest, b.f32(0.0)), b.emit(Op.FADD, rest, size), rest)
    missing = b.emit(Op.FEQ, rest, rest)
    signed = b.emit(Op.OR, b.emit(Op.AND, rest, b.const(int(MAGNITUDE))), b.emit(Op.AND, dividend, b.const(_SIGN)))
    return b.emit(Op.SELECT, missing, signed, rest)


def _crosses(b: Builder, rest: int, divisor: int) -> int:
    """1 where the rest isn't zero and has another sign than the divisor."""
    zero = b.f32(0.0)
    signs = b.emit(Op.XOR, b.emit(Op.FLT, rest, zero), b.emit(Op.FLT, divisor, zero))
    return b.emit(Op.SELECT, b.emit(Op.FEQ, rest, zero), b.const(0), signs)


def floor_rest(b: Builder, dividend: int, divisor: int, rounds: int = MOST_ROUNDS) -> int:
    """Register of a % b, with the sign of b: the exact rest, plus b where their signs differ (rounded once)."""
    rest = exact_rest(b, dividend, divisor, rounds)
    return b.emit(Op.SELECT, _crosses(b, rest, divisor), b.emit(Op.FADD, rest, divisor), rest)


def floor_quotient(b: Builder, dividend: int, divisor: int, rounds: int = MOST_ROUNDS) -> int:
    """Register of a // b: the whole number nearest to (a - fmod(a, b)) / b, less one where the rest crosses zero.

    Where b is zero it is a / b; where it is zero it has the sign of a / b.
    """
    zero, one = b.f32(0.0), b.f32(1.0)
    plain = b.emit(Op.FDIV, dividend, divisor)
    rest = exact_rest(b, dividend, divisor, rounds)
    quotient = b.emit(Op.FDIV, b.emit(Op.FSUB, dividend, rest), divisor)
    quotient = b.emit(Op.SELECT, _crosses(b, rest, divisor), b.emit(Op.FSUB, quotient, one), quotient)
    nearest = b.emit(Op.FRINT, quotient)
    low = b.emit(Op.SELECT, b.emit(Op.FLT, quotient, nearest), b.emit(Op.FSUB, nearest, one), nearest)
    above = b.emit(Op.FLT, b.f32(0.5), b.emit(Op.FSUB, quotient, low))
    whole = b.emit(Op.SELECT, above, b.emit(Op.FADD, low, one), low)
    of_zero = b.emit(Op.AND, plain, b.const(_SIGN))
    whole = b.emit(Op.SELECT, b.emit(Op.FEQ, quotient, zero), of_zero, whole)
    return b.emit(Op.SELECT, b.emit(Op.FEQ, divisor, zero), plain, whole)
