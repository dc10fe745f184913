"""Scalar programs around the exponential function."""

from pol.arithmetic.primitives import SIGN
from pol.arithmetic.registers import Float, Function, Word, fma, maximum, minimum, polynomial, select

_ONE = 0x3F800000
_SIGN = int(SIGN)
_EXPONENT_BITS = 23
EXPONENT_BIAS = 127

# 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits of the sum.
ROUNDER = 12582912.0
_LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
# ln 2 in two parts; the products of the first one with the exponents of binary32 lose nothing in an FFMA.
_LN2_HIGH = float.fromhex("0x1.62e430p-1")
_LN2_LOW = float.fromhex("-0x1.05c610p-29")

# Polynomials from the highest power down. Each has the least greatest error among those with binary32 coefficients near
# the Remez solution, in units of the result, on the stated interval.
# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, relative to e^r ...
_EXP = (0x3AB5119A, 0x3C091CE2, 0x3D2AAC69, 0x3E2AAA49, 0x3EFFFFFE)
# ... and relative to e^r - 1.
_EXPM1 = (0x3950196B, 0x3AB6B924, 0x3C088921, 0x3D2AAA67, 0x3E2AAAAA, 0x3F000000)
# (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.7109375.
_TANH = (0x3AF3DA18, 0xBC006158, 0x3CB08441, 0xBD5CD6BA, 0x3E08877B, 0xBEAAAAA7)
# erf(x) / x - 1 in x^2 for |x| <= 1.
_ERF = (0x38A4B573, 0xBA51FB40, 0x3BAA02CD, 0xBCDBFC87, 0x3DE7167C, 0xBEC0939F, 0x3E0375D4)
# log(1 - erf(x)) for 1 <= x <= 4.
_LOG_ERFC = (0xB7B603A9, 0x39E7753E, 0xBB89CC7D, 0x3CCE85E6, 0xBDDE0C68, 0xBF221A77, 0xBF909617, 0x39459F7B)


@Function
def exp(x: Float) -> Float:
    """e^x."""
    return _exp(minimum(x, 89.0))


@Function
def exp2(x: Float) -> Float:
    """2^x; exact at integers."""
    # Beyond these bounds the result is infinite or zero in any case.
    x = maximum(minimum(x, 129.0), -151.0)
    rounder = x.real(ROUNDER + 2 * EXPONENT_BIAS)
    rounded = x + rounder
    fraction = x - (rounded - rounder)
    return scale_by_power(exp_near_zero(fraction * LN2), rounded.bits)


@Function
def sigmoid(x: Float) -> Float:
    """1 / (1 + e^-x), also where the result is subnormal."""
    # Of the two equal forms 1 / (1 + e^-x) and e^x / (1 + e^x) the one whose exponential cannot overflow.
    power = _exp((x.bits | _SIGN).number)
    numerator = select(x < 0.0, power, 1.0)
    return numerator / (power + 1.0)


@Function
def tanh(x: Float) -> Float:
    """Hyperbolic tangent; odd, bit for bit."""
    size = abs(x)
    square = size * size
    near = fma(size * square, polynomial(square, _TANH), size)
    # 1 - 2 / (e^(2|x|) + 1) loses nothing to cancellation from 1/2 upwards; beyond 10 it is 1 in any case.
    growth = _exp_in_range(minimum(size + size, 20.0))
    far = 1.0 - 2.0 / (growth + 1.0)
    return select(size < 0.7109375, near, far) * _unit_with_sign_of(x)


@Function
def expm1(x: Float) -> Float:
    """e^x - 1."""
    bounded = maximum(minimum(x, 89.0), -30.0)
    # (e^x - 1) / 2 = 2^(n-1) * (e^r - 1) + (2^(n-1) - 1/2): one less in the exponent keeps 2^128 in range.
    rounded, r = reduce(bounded, EXPONENT_BIAS - 1)
    part = fma(r * r, polynomial(r, _EXPM1), r)
    scale = power_of_two(rounded)
    half = fma(part, scale, scale - 0.5)
    # Where halving could lose a bit or the sign of zero, e^x - 1 is x to the last bit.
    tiny = abs(x) < 2.0**-25
    return select(tiny, x, half + half)


@Function
def erf(x: Float) -> Float:
    """Error function; odd, bit for bit."""
    near = fma(x, polynomial(x * x, _ERF), x)
    size = abs(x)
    # Beyond 4 the result is 1 in any case.
    logarithm = polynomial(minimum(size, 4.0), _LOG_ERFC)
    one = x.real(1.0)
    far = (one - _exp_in_range(logarithm)) * _unit_with_sign_of(x)
    return select(size < one, near, far)


def power_of_two(biased: Word) -> Float:
    """2^n as a float from a word whose low 9 bits hold 127 + n."""
    return (biased << _EXPONENT_BITS).number


def scale_by_power(x: Float, biased: Word) -> Float:
    """2^n * x, rounded once even if 2^n is out of range, from a word whose low 22 bits hold 254 + n."""
    half = biased >> 1
    other = biased - half
    return x * power_of_two(half) * power_of_two(other)


def exp_near_zero(r: Float) -> Float:
    """e^r for |r| <= ln(2) / 2."""
    return polynomial(r, (*_EXP, _ONE, _ONE))


def reduce(x: Float, bias: int) -> tuple[Word, Float]:
    """(word whose low 22 bits hold bias + n, r) with x = n * ln(2) + r and |r| <= ln(2) / 2."""
    rounder = x.real(ROUNDER + bias)
    rounded = fma(x, _LOG2_E, rounder)
    n = rounded - rounder
    r = fma(n, -_LN2_HIGH, x)
    return rounded.bits, fma(n, -_LN2_LOW, r)


def _exp(x: Float) -> Float:
    """e^x for x <= 89; below -104 the result is zero in any case."""
    rounded, r = reduce(maximum(x, -104.0), 2 * EXPONENT_BIAS)
    return scale_by_power(exp_near_zero(r), rounded)


def _exp_in_range(x: Float) -> Float:
    """e^x for |x| <= 80."""
    rounded, r = reduce(x, EXPONENT_BIAS)
    return exp_near_zero(r) * power_of_two(rounded)


def _unit_with_sign_of(x: Float) -> Float:
    return ((x.bits & _SIGN) | _ONE).number
