"""The general power as a scalar program; its logarithm is carried in pairs of numbers (high + low)."""

from math import inf, nan

from pol.arithmetic.exponential import EXPONENT_BIAS, LN2, ROUNDER, exp_near_zero, scale_by_power
from pol.arithmetic.logarithm import split_positive
from pol.arithmetic.registers import (
    Float,
    Function,
    below,
    fma,
    maximum,
    minimum,
    nearest,
    polynomial,
    select,
    to_float,
)

# 2 / ln 2 and 1/3 in two parts each.
_TWO_LOG2_E = (float.fromhex("0x1.715476p+1"), float.fromhex("0x1.4ae0c0p-25"))
_THIRD = (float.fromhex("0x1.555556p-2"), float.fromhex("-0x1.555556p-27"))
# (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2 for s^2 <= 0.02945, from the highest power down; found like those of
# exponential.py.
_ATANH = (0x3DEFD04A, 0x3E122941, 0x3E4CCD00)

Pair = tuple[Float, Float]


@Function
def power(x: Float, y: Float) -> Float:
    """x^y for all words, with the special cases of IEEE-754 `pow`; inputs x, y."""
    size = abs(x)
    high, low = _log2(size)
    exponent = y * high
    rest = fma(y, low, fma(y, high, -exponent))
    # Far outside the range of binary32 the rest (there perhaps infinite minus infinite) does not matter.
    rest = select(abs(exponent) < 200.0, rest, 0.0)
    exponent = maximum(minimum(exponent, 130.0), -160.0)
    return _special_cases(x, y, _exp2(exponent, rest))


def _fast_two_sum(big: Float, small: Float) -> Pair:
    """The sum and what its rounding lost, for |big| >= |small| or big = 0."""
    total = big + small
    return total, small - (total - big)


def _two_product(x: Float, y: Float) -> Pair:
    """The product and what its rounding lost."""
    high = x * y
    return high, fma(x, y, -high)


def _log2(x: Float) -> Pair:
    """log2(x), to about 32 bits, for x >= 0, infinities and NaN."""
    k, mantissa = split_positive(x)
    high, low = _log2_of_mantissa(mantissa)
    high, lost = _fast_two_sum(to_float(k), high)
    low += lost
    infinity = x.real(inf)
    is_zero, is_finite = x == 0.0, x < infinity
    # Infinity and NaN stand for themselves.
    limit = select(is_zero, -inf, x)
    inside = is_finite - is_zero
    return select(inside, high, limit), select(inside, low, 0.0)


def _log2_of_mantissa(m: Float) -> Pair:
    """log2(m) = (2 / ln 2) * atanh(s), s = (m - 1) / (m + 1), for m between sqrt(1/2) and sqrt(2)."""
    f = m - 1.0
    d, d_low = _sum_with_one(m)
    s = f / d
    minus_s = -s
    remainder = fma(minus_s, d_low, fma(minus_s, d, f))
    s_low = remainder / d
    # atanh(s) = s + s * t with t = s^2 * (1/3 + s^2 * R(s^2)).
    z, z_low = _two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    tail = fma(z, polynomial(z, _ATANH), _THIRD[1])
    q, q_low = _fast_two_sum(z.real(_THIRD[0]), tail)
    t, t_low = _two_product(z, q)
    t_low = fma(z, q_low, fma(z_low, q, t_low))
    u, u_low = _two_product(s, t)
    u_low = fma(s, t_low, fma(s_low, t, u_low))
    high, low = _fast_two_sum(s, u)
    low += s_low + u_low
    factor, factor_low = (m.real(part) for part in _TWO_LOG2_E)
    scaled, scaled_low = _two_product(high, factor)
    scaled_low = fma(low, factor, fma(high, factor_low, scaled_low))
    return _fast_two_sum(scaled, scaled_low)


def _sum_with_one(m: Float) -> Pair:
    # The sum stands between 1 and 3, so taking 1 away again is exact.
    total = m + 1.0
    return total, m - (total - 1.0)


def _exp2(high: Float, low: Float) -> Float:
    """2^(high + low) for high between -160 and 130 and a small low."""
    rounder = high.real(ROUNDER + 2 * EXPONENT_BIAS)
    rounded = high + rounder
    fraction = high - (rounded - rounder)
    return scale_by_power(exp_near_zero((fraction + low) * LN2), rounded.bits)


def _special_cases(x: Float, y: Float, size: Float) -> Float:
    """x^y from |x|^y: signs, and where the product of exponent and logarithm is undefined."""
    zero, one, infinity = x.real(0.0), x.real(1.0), x.real(inf)
    is_whole = nearest(y) == y
    half = y * 0.5
    is_odd = below(nearest(half) == half, is_whole)
    is_negative = is_odd & (x.bits >> 31)
    signed = select(is_negative, -size, size)
    # Finite negative numbers have no powers but the whole ones.
    is_below = (x < zero) & (x > -inf)
    is_undefined = below(is_whole, is_below)
    result = select(is_undefined, nan, signed)
    # x^0 = 1^y = 1 whatever the other is, and (-1)^(+-inf) = 1.
    is_unit = (abs(x) == one) & (abs(y) == infinity)
    is_unit |= (y == zero) | (x == one)
    return select(is_unit, one, result)
