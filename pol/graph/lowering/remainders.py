"""Rests of divisions of binary32 numbers, exact for all of them, and the quotients that follow.

The definitions are those of C's fmod and of Python's % and //, which torch has for floats, too.
"""

from __future__ import annotations

from math import frexp, isfinite

from pol.arithmetic.primitives import MAGNITUDE
from pol.arithmetic.registers import Float, Word, fma, is_number, nearest, select

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
