"""Sine and cosine as scalar programs, with an exact reduction of every binary32 number."""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

from pol.arithmetic.primitives import INFINITY, MAGNITUDE, NAN, SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

_ONE = 0x3F800000
_MINUS_HALF = 0xBF000000
_MANTISSA = 0x007FFFFF
_EXPONENT_BITS = 23
_BIAS = 127

# Bits -24 to 199 after the binary point of 2 / pi; the first bit is worth 2^24.
_TWO_OVER_PI = (0x00000051, 0x7CC1B727, 0x220A94FE, 0x13ABE8FA, 0x9A6EE06D, 0xB14ACC9E, 0x21C820FF)
# pi / 2 in two parts.
_HALF_PI = float.fromhex("0x1.921fb6p+0")
_HALF_PI_LOW = float.fromhex("-0x1.777a5cp-25")

# Polynomials from the highest power down, found like those of exponential.py, for |r| <= 1 and in r^2:
# (1 - sin(r) / r) / r^2 ...
_SIN = (0xB636F4FC, 0x39500FFF, 0xBC08889F, 0x3E2AAAAB)
# ... and (cos(r) - 1 + r^2 / 2) / r^4.
_COS = (0x37CB0492, 0xBAB5FD50, 0x3D2AAA92)


class _Quarters(NamedTuple):
    """Registers of n (its low 2 bits), r and sin(r), cos(r), with |x| = n * pi / 2 + r."""

    n: int
    sine: int
    cosine: int


@cache
def sin() -> ScalarProgram:
    """Sine; odd, bit for bit, and NaN at infinities."""
    b = Builder(1)
    x = b.input(0)
    size = b.emit(Op.AND, x, b.const(int(MAGNITUDE)))
    n, sine, cosine = _quarters(b, size)
    turned = b.emit(Op.SELECT, b.emit(Op.AND, n, b.const(1)), cosine, sine)
    minus = b.emit(Op.XOR, b.emit(Op.AND, x, b.const(int(SIGN))), _half_turn(b, n))
    return b.build(_finite_only(b, size, b.emit(Op.XOR, turned, minus)))


@cache
def cos() -> ScalarProgram:
    """Cosine; even, bit for bit, and NaN at infinities."""
    b = Builder(1)
    size = b.emit(Op.AND, b.input(0), b.const(int(MAGNITUDE)))
    n, sine, cosine = _quarters(b, size)
    turned = b.emit(Op.SELECT, b.emit(Op.AND, n, b.const(1)), sine, cosine)
    minus = _half_turn(b, b.emit(Op.ADD, n, b.const(1)))
    return b.build(_finite_only(b, size, b.emit(Op.XOR, turned, minus)))


def _quarters(b: Builder, size: int) -> _Quarters:
    """The quarter turns in |x|, and sine and cosine of what is left of it; `size` is the word of |x|, finite."""
    # Below 1 the polynomials need no reduction.
    small = b.emit(Op.LTU, size, b.const(_ONE))
    n, rest, excess = _reduce(b, size)
    n = b.emit(Op.SELECT, small, b.const(0), n)
    r = b.emit(Op.SELECT, small, size, rest)
    excess = b.emit(Op.SELECT, small, b.const(0), excess)
    square = b.emit(Op.FMUL, r, r)
    # sin(r - d) = r - (r^3 P(r^2) + d) and cos(r - d) = 1 + r (r Q(r^2) + d) as far as the excess d can be seen.
    less = b.emit(Op.FFMA, b.emit(Op.FMUL, r, square), b.polynomial(square, _SIN), excess)
    slope = b.emit(Op.FFMA, r, b.polynomial(square, (*_COS, _MINUS_HALF)), excess)
    return _Quarters(n, b.emit(Op.FSUB, r, less), b.emit(Op.FFMA, r, slope, b.const(_ONE)))


def _reduce(b: Builder, size: int) -> tuple[int, int, int]:
    """(word with n in its low 2 bits and none above, r, d) with |x| = n * pi / 2 + r - d, |r| <= pi / 4, for |x| >= 1.

    d is what the rounding of r added.

    |x| is an integer m of 24 bits times 2^(e - 23). Bits of 2 / pi that are worth 4 or more after the product with
    2^(e - 23) add whole turns only, so m is multiplied with the 96 bits below them (Payne and Hanek, 1983).
    """
    mantissa = b.emit(Op.OR, b.emit(Op.AND, size, b.const(_MANTISSA)), b.const(_MANTISSA + 1))
    exponent = b.emit(Op.SUB, b.emit(Op.SHR, size, b.const(_EXPONENT_BITS)), b.const(_BIAS))
    high, low = _product_modulo_4(b, mantissa, _window(b, exponent))
    # In units of 2^-30 quarter turns the high word, rounded to multiples of 64, is a signed number that binary32 holds;
    # the 32 bits below it, signed as well, are the rest, which keeps its precision where the high part cancels.
    rounded = b.emit(Op.ADD, high, b.const(32))
    n = b.emit(Op.SHR, b.emit(Op.ADD, rounded, b.const(1 << 29)), b.const(30))
    upper = b.emit(Op.I2F, b.emit(Op.AND, b.emit(Op.SHL, rounded, b.const(2)), b.const(0xFFFFFF00)))
    lower = b.emit(Op.OR, b.emit(Op.SHL, high, b.const(26)), b.emit(Op.SHR, low, b.const(6)))
    lower = b.emit(Op.I2F, lower)
    # The product with pi / 2, whose rounding goes back in.
    factor = b.f32(_HALF_PI * 2.0**-32)
    product = b.emit(Op.FMUL, upper, factor)
    lost = b.emit(Op.FFMA, upper, factor, b.emit(Op.FNEG, product))
    lost = b.emit(Op.FFMA, upper, b.f32(_HALF_PI_LOW * 2.0**-32), lost)
    lost = b.emit(Op.FFMA, lower, b.f32(_HALF_PI * 2.0**-56), lost)
    r = b.emit(Op.FADD, product, lost)
    return n, r, b.emit(Op.FSUB, b.emit(Op.FSUB, r, product), lost)


def _window(b: Builder, shift: int) -> list[int]:
    """Three words with the 96 bits of 2 / pi from bit `shift` of the table on, for shift < 128."""
    words = [b.const(word) for word in _TWO_OVER_PI]
    for words_skipped in (2, 1):
        skip = b.emit(Op.AND, shift, b.const(32 * words_skipped))
        later = words[words_skipped:]
        words = [b.emit(Op.SELECT, skip, *pair) for pair in zip(later, words, strict=False)]
    left = b.emit(Op.AND, shift, b.const(31))
    right = b.emit(Op.SUB, b.const(32), left)
    return [
        b.emit(Op.OR, b.emit(Op.SHL, word, left), b.emit(Op.SHR, following, right))
        for word, following in pairwise(words)
    ]


def _product_modulo_4(b: Builder, m: int, words: list[int]) -> tuple[int, int]:
    """The upper 64 of the lower 96 bits of m * words, (high, low); the lowest bit of `words` is worth 2^-94."""
    first, second, third = words
    carried = b.emit(Op.MULHI, m, third)
    low = b.emit(Op.ADD, b.emit(Op.MUL, m, second), carried)
    carry = b.emit(Op.LTU, low, carried)
    high = b.emit(Op.ADD, b.emit(Op.MUL, m, first), b.emit(Op.MULHI, m, second))
    return b.emit(Op.ADD, high, carry), low


def _half_turn(b: Builder, n: int) -> int:
    """The sign bit if bit 1 of n is set."""
    return b.emit(Op.SHL, b.emit(Op.SHR, n, b.const(1)), b.const(31))


def _finite_only(b: Builder, size: int, value: int) -> int:
    return b.emit(Op.SELECT, b.emit(Op.LTU, size, b.const(int(INFINITY))), value, b.const(int(NAN)))
