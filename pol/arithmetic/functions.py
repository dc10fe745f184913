"""Elementary functions as scalar programs; their greatest errors stand in docs/spec/functions.md.

Every program is total: it gives the limits at infinities and zeros, NaN outside the domain, and subnormal results
rounded like all others. The polynomials have the least greatest error among those with binary32 coefficients near the
Remez solution on the reduced interval.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from pol.arithmetic.primitives import INFINITY, NAN, SIGN, Op
from pol.arithmetic.program import Builder, ScalarProgram

_ONE = 0x3F800000
_EXPONENT_BITS = 23
_EXPONENT_BIAS = 127

# 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits of the sum.
_ROUNDER = 12582912.0
_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the products of the first one with the exponents of binary32 lose nothing in an FFMA.
_LN2_HIGH = float.fromhex("0x1.62e430p-1")
_LN2_LOW = float.fromhex("-0x1.05c610p-29")
# The same with so few bits in the first part that its products with exponents are themselves exact.
_LN2_SHORT = float.fromhex("0x1.62e4p-1")
_LN2_REST = float.fromhex("0x1.7f7d1cp-20")

# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, from the highest power down.
_EXP = (0x3AB5119A, 0x3C091CE2, 0x3D2AAC69, 0x3E2AAA49, 0x3EFFFFFE)
# (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.7109375.
_TANH = (0x3AF3DA18, 0xBC006158, 0x3CB08441, 0xBD5CD6BA, 0x3E08877B, 0xBEAAAAA7)
# (log(1 + f) - f) / f^2 for sqrt(1/2) <= 1 + f <= sqrt(2).
_LOG = (
    *(0xBD9C1E16, 0x3E042866, 0xBE079C79, 0x3E113843, 0xBE2A1393),
    *(0x3E4CD202, 0xBE800215, 0x3EAAAAA8, 0xBEFFFFFC),
)


@cache
def exp() -> ScalarProgram:
    """e^x."""
    b = Builder(1)
    return b.build(_exp(b, b.emit(Op.FMIN, b.input(0), b.f32(89.0))))


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
    near = b.emit(Op.FFMA, b.emit(Op.FMUL, size, square), _polynomial(b, square, _TANH), size)
    # 1 - 2 / (e^(2|x|) + 1) loses nothing to cancellation from 1/2 upwards; beyond 10 it is 1 in any case.
    rounded, power = _exp_reduced(b, b.emit(Op.FMIN, b.emit(Op.FADD, size, size), b.f32(20.0)), _EXPONENT_BIAS)
    growth = b.emit(Op.FMUL, power, _power_of_two(b, rounded))
    quotient = b.emit(Op.FDIV, b.f32(2.0), b.emit(Op.FADD, growth, b.const(_ONE)))
    far = b.emit(Op.FSUB, b.const(_ONE), quotient)
    result = b.emit(Op.SELECT, b.emit(Op.FLT, size, b.f32(0.7109375)), near, far)
    sign = b.emit(Op.OR, b.emit(Op.AND, x, b.const(int(SIGN))), b.const(_ONE))
    return b.build(b.emit(Op.FMUL, result, sign))


@cache
def log() -> ScalarProgram:
    """Natural logarithm; -inf at zeros, NaN below."""
    b = Builder(1)
    x = b.input(0)
    # Subnormal numbers are made normal by a power of two, which is taken back in the exponent field.
    small = b.emit(Op.FLT, x, b.const(1 << _EXPONENT_BITS))
    normal = b.emit(Op.SELECT, small, b.emit(Op.FMUL, x, b.f32(2.0**23)), x)
    k, mantissa = _split(b, normal)
    k = b.emit(Op.SUB, k, b.emit(Op.SELECT, small, b.const(23), b.const(0)))
    f = b.emit(Op.FSUB, mantissa, b.const(_ONE))
    return b.build(_log_limits(b, x, _log(b, k, f)))


@cache
def rsqrt() -> ScalarProgram:
    """1 / sqrt(x)."""
    b = Builder(1)
    return b.build(b.emit(Op.FDIV, b.const(_ONE), b.emit(Op.FSQRT, b.input(0))))


@cache
def reciprocal() -> ScalarProgram:
    """1 / x, correctly rounded."""
    b = Builder(1)
    return b.build(b.emit(Op.FDIV, b.const(_ONE), b.input(0)))


def _polynomial(b: Builder, x: int, words: Sequence[int]) -> int:
    """Horner's scheme over coefficients given as words from the highest power down."""
    value = b.const(words[0])
    for word in words[1:]:
        value = b.emit(Op.FFMA, value, x, b.const(word))
    return value


def _power_of_two(b: Builder, biased: int) -> int:
    """2^n as a float from a word whose low 9 bits hold 127 + n."""
    return b.emit(Op.SHL, biased, b.const(_EXPONENT_BITS))


def _exp_reduced(b: Builder, x: int, bias: int) -> tuple[int, int]:
    """(word whose low 22 bits hold bias + n, p) with e^x = 2^n * p and p between sqrt(1/2) and sqrt(2)."""
    rounder = b.f32(_ROUNDER + bias)
    rounded = b.emit(Op.FFMA, x, b.f32(_LOG2_E), rounder)
    n = b.emit(Op.FSUB, rounded, rounder)
    r = b.emit(Op.FFMA, n, b.f32(-_LN2_HIGH), x)
    r = b.emit(Op.FFMA, n, b.f32(-_LN2_LOW), r)
    return rounded, _polynomial(b, r, (*_EXP, _ONE, _ONE))


def _exp(b: Builder, x: int) -> int:
    """e^x for x <= 89; below -104 the result is zero in any case."""
    rounded, power = _exp_reduced(b, b.emit(Op.FMAX, x, b.f32(-104.0)), 2 * _EXPONENT_BIAS)
    # 2^n itself may be out of range, so it is multiplied in two halves; only the second product can round.
    half = b.emit(Op.SHR, rounded, b.const(1))
    other = b.emit(Op.SUB, rounded, half)
    return b.emit(Op.FMUL, b.emit(Op.FMUL, power, _power_of_two(b, half)), _power_of_two(b, other))


def _split(b: Builder, x: int) -> tuple[int, int]:
    """(k, m) with x = 2^k * m and m about between sqrt(1/2) and sqrt(2), for positive normal x."""
    above = b.emit(Op.SUB, x, b.const(0x3F3504F3))  # the word of sqrt(1/2)
    k = b.emit(Op.SAR, above, b.const(_EXPONENT_BITS))
    return k, b.emit(Op.SUB, x, b.emit(Op.SHL, k, b.const(_EXPONENT_BITS)))


def _log(b: Builder, k: int, f: int) -> int:
    """k * ln(2) + log(1 + f) from the integer k."""
    n = b.emit(Op.I2F, k)
    base = b.emit(Op.FMUL, n, b.f32(_LN2_SHORT))
    # What the rounding of base + f loses is kept: a sum of two roundings would cost half a unit more.
    total = b.emit(Op.FADD, base, f)
    lost = b.emit(Op.FSUB, f, b.emit(Op.FSUB, total, base))
    rest = b.emit(Op.FFMA, n, b.f32(_LN2_REST), lost)
    tail = b.emit(Op.FFMA, b.emit(Op.FMUL, f, f), _polynomial(b, f, _LOG), rest)
    return b.emit(Op.FADD, total, tail)


def _log_limits(b: Builder, x: int, inside: int) -> int:
    """`inside` for positive finite x, and the limits elsewhere."""
    infinity = b.const(int(INFINITY))
    positive = b.emit(Op.SELECT, b.emit(Op.FLT, x, infinity), inside, infinity)
    zero = b.emit(Op.FEQ, x, b.const(0))
    outside = b.emit(Op.SELECT, zero, b.const(int(INFINITY | SIGN)), b.const(int(NAN)))
    return b.emit(Op.SELECT, b.emit(Op.FLT, b.const(0), x), positive, outside)


CATALOGUE: Mapping[str, Callable[[], ScalarProgram]] = MappingProxyType(
    {
        "exp": exp,
        "log": log,
        "reciprocal": reciprocal,
        "rsqrt": rsqrt,
        "sigmoid": sigmoid,
        "tanh": tanh,
    }
)
"""Every function by its name; what is measured and put into vectors."""
