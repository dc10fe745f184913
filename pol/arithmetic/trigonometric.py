"""Sine and cosine as scalar programs, with an exact reduction of every binary32 number."""

from itertools import pairwise
from math import nan
from typing import NamedTuple

from pol.arithmetic.primitives import INFINITY, MAGNITUDE, SIGN
from pol.arithmetic.registers import Float, Function, Word, below, fma, high_product, polynomial, select, to_float

_ONE = 0x3F800000
_MAGNITUDE, _SIGN = int(MAGNITUDE), int(SIGN)
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
    """n (its low 2 bits), and sin(r), cos(r), with |x| = n * pi / 2 + r."""

    n: Word
    sine: Float
    cosine: Float


@Function
def sin(x: Float) -> Float:
    """Sine; odd, bit for bit, and NaN at infinities."""
    size = x.bits & _MAGNITUDE
    n, sine, cosine = _quarters(size)
    turned = select(n & 1, cosine, sine)
    minus = (x.bits & _SIGN) ^ _half_turn(n)
    return _finite_only(size, (turned.bits ^ minus).number)


@Function
def cos(x: Float) -> Float:
    """Cosine; even, bit for bit, and NaN at infinities."""
    size = x.bits & _MAGNITUDE
    n, sine, cosine = _quarters(size)
    turned = select(n & 1, sine, cosine)
    minus = _half_turn(n + 1)
    return _finite_only(size, (turned.bits ^ minus).number)


def _quarters(size: Word) -> _Quarters:
    """The quarter turns in |x|, and sine and cosine of what is left of it; `size` is the word of |x|, finite."""
    # Below 1 the polynomials need no reduction.
    is_small = below(size, _ONE)
    n, rest, excess = _reduce(size)
    n = select(is_small, 0, n)
    r = select(is_small, size.number, rest)
    excess = select(is_small, 0.0, excess)
    square = r * r
    # sin(r - d) = r - (r^3 P(r^2) + d) and cos(r - d) = 1 + r (r Q(r^2) + d) as far as the excess d can be seen.
    less = fma(r * square, polynomial(square, _SIN), excess)
    slope = fma(r, polynomial(square, (*_COS, _MINUS_HALF)), excess)
    return _Quarters(n, r - less, fma(r, slope, 1.0))


def _reduce(size: Word) -> tuple[Word, Float, Float]:
    """(word with n in its low 2 bits and none above, r, d) with |x| = n * pi / 2 + r - d, |r| <= pi / 4, for |x| >= 1.

    d is what the rounding of r added.

    |x| is an integer m of 24 bits times 2^(e - 23). Bits of 2 / pi that are worth 4 or more after the product with
    2^(e - 23) add whole turns only, so m is multiplied with the 96 bits below them (Payne and Hanek, 1983).
    """
    mantissa = (size & _MANTISSA) | (_MANTISSA + 1)
    exponent = (size >> _EXPONENT_BITS) - _BIAS
    high, low = _product_modulo_4(mantissa, _window(exponent))
    # In units of 2^-30 quarter turns the high word, rounded to multiples of 64, is a signed number that binary32 holds;
    # the 32 bits below it, signed as well, are the rest, which keeps its precision where the high part cancels.
    rounded = high + 32
    n = (rounded + (1 << 29)) >> 30
    upper = to_float((rounded << 2) & 0xFFFFFF00)
    lower = to_float((high << 26) | (low >> 6))
    # The product with pi / 2, whose rounding goes back in.
    factor = upper.real(_HALF_PI * 2.0**-32)
    product = upper * factor
    lost = fma(upper, factor, -product)
    lost = fma(upper, _HALF_PI_LOW * 2.0**-32, lost)
    lost = fma(lower, _HALF_PI * 2.0**-56, lost)
    r = product + lost
    return n, r, (r - product) - lost


def _window(shift: Word) -> list[Word]:
    """Three words with the 96 bits of 2 / pi from bit `shift` of the table on, for shift < 128."""
    words = [shift.pattern(word) for word in _TWO_OVER_PI]
    for words_skipped in (2, 1):
        skip = shift & (32 * words_skipped)
        later = words[words_skipped:]
        words = [select(skip, *pair) for pair in zip(later, words, strict=False)]
    left = shift & 31
    right = 32 - left
    return [(word << left) | (following >> right) for word, following in pairwise(words)]


def _product_modulo_4(m: Word, words: list[Word]) -> tuple[Word, Word]:
    """The upper 64 of the lower 96 bits of m * words, (high, low); the lowest bit of `words` is worth 2^-94."""
    first, second, third = words
    carried = high_product(m, third)
    low = m * second + carried
    carry = below(low, carried)
    high = m * first + high_product(m, second)
    return high + carry, low


def _half_turn(n: Word) -> Word:
    """The sign bit if bit 1 of n is set."""
    return (n >> 1) << 31


def _finite_only(size: Word, value: Float) -> Float:
    return select(below(size, int(INFINITY)), value, nan)
