"""Scalar programs around the exponential function."""

from functools import cache

from pol.arithmetic.primitives import SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

_ONE = 0x3F800000
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


@cache
def exp() -> ScalarProgram:
    """e^x."""
    b = Builder(1)
    return b.build(_exp(b, b.emit(Op.FMIN, b.input(0), b.f32(89.0))))


@cache
def exp2() -> ScalarProgram:
    """2^x; exact at integers."""
    b = Builder(1)
    # Beyond these bounds the result is infinite or zero in any case.
    x = b.emit(Op.FMAX, b.emit(Op.FMIN, b.input(0), b.f32(129.0)), b.f32(-151.0))
    rounder = b.f32(ROUNDER + 2 * EXPONENT_BIAS)
    rounded = b.emit(Op.FADD, x, rounder)
    fraction = b.emit(Op.FSUB, x, b.emit(Op.FSUB, rounded, rounder))
    r = b.emit(Op.FMUL, fraction, b.f32(LN2))
    return b.build(scale_by_power(b, exp_near_zero(b, r), rounded))


@cache
def sigmoid() -> ScalarProgram:
    """1 / (1 + e^-x), also where the result is subnormal."""
    b = Builder(1)
    x = b.input(0)
    # Of the two equal forms 1 / (1 + e^-x) and e^x / (1 + e^x) the one whose exponential cannot overflow.
    power = _exp(b, b.emit(Op.OR, x, b.const(int(SIGN))))
    numerator = b.emit(Op.SELECT, b.emit(Op.FLT, x, b.const(0)), power, b.const(_ONE))
    return b.build(b.emit(Op.FDIV, numerator, b.emit(Op.FADD, power, b.const(_ONE))))


@cache
def tanh() -> ScalarProgram:
    """Hyperbolic tangent; odd, bit for bit."""
    b = Builder(1)
    x = b.input(0)
    size = b.emit(Op.FABS, x)
    square = b.emit(Op.FMUL, size, size)
    near = b.emit(Op.FFMA, b.emit(Op.FMUL, size, square), b.polynomial(square, _TANH), size)
    # 1 - 2 / (e^(2|x|) + 1) loses nothing to cancellation from 1/2 upwards; beyond 10 it is 1 in any case.
    growth = _exp_in_range(b, b.emit(Op.FMIN, b.emit(Op.FADD, size, size), b.f32(20.0)))
    quotient = b.emit(Op.FDIV, b.f32(2.0), b.emit(Op.FADD, growth, b.const(_ONE)))
    far = b.emit(Op.FSUB, b.const(_ONE), quotient)
    result = b.emit(Op.SELECT, b.emit(Op.FLT, size, b.f32(0.7109375)), near, far)
    return b.build(b.emit(Op.FMUL, result, _unit_with_sign_of(b, x)))


@cache
def expm1() -> ScalarProgram:
    """e^x - 1."""
    b = Builder(1)
    x = b.input(0)
    bounded = b.emit(Op.FMAX, b.emit(Op.FMIN, x, b.f32(89.0)), b.f32(-30.0))
    # (e^x - 1) / 2 = 2^(n-1) * (e^r - 1) + (2^(n-1) - 1/2): one less in the exponent keeps 2^128 in range.
    rounded, r = reduce(b, bounded, EXPONENT_BIAS - 1)
    part = b.emit(Op.FFMA, b.emit(Op.FMUL, r, r), b.polynomial(r, _EXPM1), r)
    scale = power_of_two(b, rounded)
    half = b.emit(Op.FFMA, part, scale, b.emit(Op.FSUB, scale, b.f32(0.5)))
    # Where halving could lose a bit or the sign of zero, e^x - 1 is x to the last bit.
    tiny = b.emit(Op.FLT, b.emit(Op.FABS, x), b.f32(2.0**-25))
    return b.build(b.emit(Op.SELECT, tiny, x, b.emit(Op.FADD, half, half)))


@cache
def erf() -> ScalarProgram:
    """Error function; odd, bit for bit."""
    b = Builder(1)
    x = b.input(0)
    near = b.emit(Op.FFMA, x, b.polynomial(b.emit(Op.FMUL, x, x), _ERF), x)
    size = b.emit(Op.FABS, x)
    # Beyond 4 the result is 1 in any case.
    logarithm = b.polynomial(b.emit(Op.FMIN, size, b.f32(4.0)), _LOG_ERFC)
    far = b.emit(Op.FSUB, b.const(_ONE), _exp_in_range(b, logarithm))
    far = b.emit(Op.FMUL, far, _unit_with_sign_of(b, x))
    return b.build(b.emit(Op.SELECT, b.emit(Op.FLT, size, b.const(_ONE)), near, far))


def power_of_two(b: Builder, biased: int) -> int:
    """2^n as a float from a word whose low 9 bits hold 127 + n."""
    return b.emit(Op.SHL, biased, b.const(_EXPONENT_BITS))


def scale_by_power(b: Builder, x: int, biased: int) -> int:
    """2^n * x, rounded once even if 2^n is out of range, from a word whose low 22 bits hold 254 + n."""
    half = b.emit(Op.SHR, biased, b.const(1))
    other = b.emit(Op.SUB, biased, half)
    return b.emit(Op.FMUL, b.emit(Op.FMUL, x, power_of_two(b, half)), power_of_two(b, other))


def exp_near_zero(b: Builder, r: int) -> int:
    """e^r for |r| <= ln(2) / 2."""
    return b.polynomial(r, (*_EXP, _ONE, _ONE))


def reduce(b: Builder, x: int, bias: int) -> tuple[int, int]:
    """(word whose low 22 bits hold bias + n, r) with x = n * ln(2) + r and |r| <= ln(2) / 2."""
    rounder = b.f32(ROUNDER + bias)
    rounded = b.emit(Op.FFMA, x, b.f32(_LOG2_E), rounder)
    n = b.emit(Op.FSUB, rounded, rounder)
    r = b.emit(Op.FFMA, n, b.f32(-_LN2_HIGH), x)
    return rounded, b.emit(Op.FFMA, n, b.f32(-_LN2_LOW), r)


def _exp(b: Builder, x: int) -> int:
    """e^x for x <= 89; below -104 the result is zero in any case."""
    rounded, r = reduce(b, b.emit(Op.FMAX, x, b.f32(-104.0)), 2 * EXPONENT_BIAS)
    return scale_by_power(b, exp_near_zero(b, r), rounded)


def _exp_in_range(b: Builder, x: int) -> int:
    """e^x for |x| <= 80."""
    rounded, r = reduce(b, x, EXPONENT_BIAS)
    return b.emit(Op.FMUL, exp_near_zero(b, r), power_of_two(b, rounded))


def _unit_with_sign_of(b: Builder, x: int) -> int:
    return b.emit(Op.OR, b.emit(Op.AND, x, b.const(int(SIGN))), b.const(_ONE))
