"""The general power as a scalar program; its logarithm is carried in pairs of numbers (high + low)."""

from functools import cache

from pol.arithmetic.exponential import EXPONENT_BIAS, LN2, ROUNDER, exp_near_zero, scale_by_power
from pol.arithmetic.logarithm import split_positive
from pol.arithmetic.primitives import INFINITY, NAN, SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

_ONE = 0x3F800000
# 2 / ln 2 and 1/3 in two parts each.
_TWO_LOG2_E = (float.fromhex("0x1.715476p+1"), float.fromhex("0x1.4ae0c0p-25"))
_THIRD = (float.fromhex("0x1.555556p-2"), float.fromhex("-0x1.555556p-27"))
# (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2 for s^2 <= 0.02945, from the highest power down; found like those of
# exponential.py.
_ATANH = (0x3DEFD04A, 0x3E122941, 0x3E4CCD00)

Pair = tuple[int, int]


@cache
def power() -> ScalarProgram:
    """x^y for all words, with the special cases of IEEE-754 `pow`; inputs x, y."""
    b = Builder(2)
    x, y = b.input(0), b.input(1)
    size = b.emit(Op.FABS, x)
    high, low = _log2(b, size)
    exponent = b.emit(Op.FMUL, y, high)
    rest = b.emit(Op.FFMA, y, low, b.emit(Op.FFMA, y, high, b.emit(Op.FNEG, exponent)))
    # Far outside the range of binary32 the rest (there perhaps infinite minus infinite) does not matter.
    rest = b.emit(Op.SELECT, b.emit(Op.FLT, b.emit(Op.FABS, exponent), b.f32(200.0)), rest, b.const(0))
    exponent = b.emit(Op.FMAX, b.emit(Op.FMIN, exponent, b.f32(130.0)), b.f32(-160.0))
    return b.build(_special_cases(b, x, y, _exp2(b, exponent, rest)))


def _fast_two_sum(b: Builder, big: int, small: int) -> Pair:
    """The sum and what its rounding lost, for |big| >= |small| or big = 0."""
    total = b.emit(Op.FADD, big, small)
    return total, b.emit(Op.FSUB, small, b.emit(Op.FSUB, total, big))


def _two_product(b: Builder, x: int, y: int) -> Pair:
    """The product and what its rounding lost."""
    high = b.emit(Op.FMUL, x, y)
    return high, b.emit(Op.FFMA, x, y, b.emit(Op.FNEG, high))


def _log2(b: Builder, x: int) -> Pair:
    """log2(x), to about 32 bits, for x >= 0, infinities and NaN."""
    k, mantissa = split_positive(b, x)
    high, low = _log2_of_mantissa(b, mantissa)
    high, lost = _fast_two_sum(b, b.emit(Op.I2F, k), high)
    low = b.emit(Op.FADD, low, lost)
    infinity = b.const(int(INFINITY))
    zero, finite = b.emit(Op.FEQ, x, b.const(0)), b.emit(Op.FLT, x, infinity)
    # Infinity and NaN stand for themselves.
    limit = b.emit(Op.SELECT, zero, b.const(int(INFINITY | SIGN)), x)
    inside = b.emit(Op.SUB, finite, zero)
    return b.emit(Op.SELECT, inside, high, limit), b.emit(Op.SELECT, inside, low, b.const(0))


def _log2_of_mantissa(b: Builder, m: int) -> Pair:
    """log2(m) = (2 / ln 2) * atanh(s), s = (m - 1) / (m + 1), for m between sqrt(1/2) and sqrt(2)."""
    one = b.const(_ONE)
    f = b.emit(Op.FSUB, m, one)
    d, d_low = _sum_with_one(b, m)
    s = b.emit(Op.FDIV, f, d)
    minus_s = b.emit(Op.FNEG, s)
    remainder = b.emit(Op.FFMA, minus_s, d_low, b.emit(Op.FFMA, minus_s, d, f))
    s_low = b.emit(Op.FDIV, remainder, d)
    # atanh(s) = s + s * t with t = s^2 * (1/3 + s^2 * R(s^2)).
    z, z_low = _two_product(b, s, s)
    z_low = b.emit(Op.FFMA, b.emit(Op.FADD, s, s), s_low, z_low)
    tail = b.emit(Op.FFMA, z, b.polynomial(z, _ATANH), b.f32(_THIRD[1]))
    q, q_low = _fast_two_sum(b, b.f32(_THIRD[0]), tail)
    t, t_low = _two_product(b, z, q)
    t_low = b.emit(Op.FFMA, z, q_low, b.emit(Op.FFMA, z_low, q, t_low))
    u, u_low = _two_product(b, s, t)
    u_low = b.emit(Op.FFMA, s, t_low, b.emit(Op.FFMA, s_low, t, u_low))
    high, low = _fast_two_sum(b, s, u)
    low = b.emit(Op.FADD, low, b.emit(Op.FADD, s_low, u_low))
    factor, factor_low = (b.f32(part) for part in _TWO_LOG2_E)
    scaled, scaled_low = _two_product(b, high, factor)
    scaled_low = b.emit(Op.FFMA, low, factor, b.emit(Op.FFMA, high, factor_low, scaled_low))
    return _fast_two_sum(b, scaled, scaled_low)


def _sum_with_one(b: Builder, m: int) -> Pair:
    # The sum stands between 1 and 3, so taking 1 away again is exact.
    total = b.emit(Op.FADD, m, b.const(_ONE))
    return total, b.emit(Op.FSUB, m, b.emit(Op.FSUB, total, b.const(_ONE)))


def _exp2(b: Builder, high: int, low: int) -> int:
    """2^(high + low) for high between -160 and 130 and a small low."""
    rounder = b.f32(ROUNDER + 2 * EXPONENT_BIAS)
    rounded = b.emit(Op.FADD, high, rounder)
    fraction = b.emit(Op.FSUB, high, b.emit(Op.FSUB, rounded, rounder))
    r = b.emit(Op.FMUL, b.emit(Op.FADD, fraction, low), b.f32(LN2))
    return scale_by_power(b, exp_near_zero(b, r), rounded)


def _special_cases(b: Builder, x: int, y: int, size: int) -> int:
    """x^y from |x|^y: signs, and where the product of exponent and logarithm is undefined."""
    zero, one, infinity = b.const(0), b.const(_ONE), b.const(int(INFINITY))
    whole = b.emit(Op.FEQ, b.emit(Op.FRINT, y), y)
    half = b.emit(Op.FMUL, y, b.f32(0.5))
    odd = b.emit(Op.LTU, b.emit(Op.FEQ, b.emit(Op.FRINT, half), half), whole)
    negative = b.emit(Op.AND, odd, b.emit(Op.SHR, x, b.const(31)))
    signed = b.emit(Op.SELECT, negative, b.emit(Op.FNEG, size), size)
    # Finite negative numbers have no powers but the whole ones.
    below = b.emit(Op.AND, b.emit(Op.FLT, x, zero), b.emit(Op.FLT, b.const(int(INFINITY | SIGN)), x))
    undefined = b.emit(Op.LTU, whole, below)
    result = b.emit(Op.SELECT, undefined, b.const(int(NAN)), signed)
    # x^0 = 1^y = 1 whatever the other is, and (-1)^(+-inf) = 1.
    unit = b.emit(Op.AND, b.emit(Op.FEQ, b.emit(Op.FABS, x), one), b.emit(Op.FEQ, b.emit(Op.FABS, y), infinity))
    unit = b.emit(Op.OR, unit, b.emit(Op.OR, b.emit(Op.FEQ, y, zero), b.emit(Op.FEQ, x, one)))
    return b.emit(Op.SELECT, unit, one, result)
