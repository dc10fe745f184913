"""Scalar programs around the natural logarithm."""

from functools import cache

from pol.arithmetic.primitives import INFINITY, NAN, SIGN, Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

_ONE = 0x3F800000
_EXPONENT_BITS = 23

# ln 2 in two parts, the first one so short that its products with exponents are exact.
_LN2_SHORT = float.fromhex("0x1.62e4p-1")
_LN2_REST = float.fromhex("0x1.7f7d1cp-20")

# 1 / ln 2 in two parts.
_LOG2_E = (float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0c0p-26"))

# (log(1 + f) - f) / f^2 for sqrt(1/2) <= 1 + f <= sqrt(2), from the highest power down, found like
# those of exponential.py.
_LOG = (
    *(0xBD9C1E16, 0x3E042866, 0xBE079C79, 0x3E113843, 0xBE2A1393),
    *(0x3E4CD202, 0xBE800215, 0x3EAAAAA8, 0xBEFFFFFC),
)


@cache
def log() -> ScalarProgram:
    """Natural logarithm; -inf at zeros, NaN below."""
    b = Builder(1)
    x = b.input(0)
    k, mantissa = split_positive(b, x)
    f = b.emit(Op.FSUB, mantissa, b.const(_ONE))
    return b.build(_log_limits(b, x, b.emit(Op.FADD, *_log(b, k, f))))


@cache
def log2() -> ScalarProgram:
    """Logarithm to base 2, exact at powers of two; -inf at zeros, NaN below."""
    b = Builder(1)
    x = b.input(0)
    k, mantissa = split_positive(b, x)
    total, tail = _log(b, k, b.emit(Op.FSUB, mantissa, b.const(_ONE)))
    high = b.emit(Op.FADD, total, tail)
    low = b.emit(Op.FSUB, tail, b.emit(Op.FSUB, high, total))
    factor, factor_low = (b.f32(part) for part in _LOG2_E)
    low = b.emit(Op.FFMA, high, factor_low, b.emit(Op.FMUL, low, factor))
    return b.build(_log_limits(b, x, b.emit(Op.FFMA, high, factor, low)))


@cache
def log1p() -> ScalarProgram:
    """log(1 + x); -inf at -1, NaN below."""
    b = Builder(1)
    x, one = b.input(0), b.const(_ONE)
    total = b.emit(Op.FADD, x, one)
    # What the sum lost (TwoSum) goes back into the fraction, so that small x count to the last bit.
    part = b.emit(Op.FSUB, total, one)
    lost = b.emit(Op.FADD, b.emit(Op.FSUB, one, b.emit(Op.FSUB, total, part)), b.emit(Op.FSUB, x, part))
    k, mantissa = _split(b, total)
    shrink = b.emit(Op.FDIV, mantissa, total)  # 2^-k, which may be subnormal
    f = b.emit(Op.FFMA, lost, shrink, b.emit(Op.FSUB, mantissa, one))
    # Also keeps the sign of zero.
    tiny = b.emit(Op.FLT, b.emit(Op.FABS, x), b.f32(2.0**-25))
    inside = b.emit(Op.FADD, *_log(b, k, f))
    return b.build(b.emit(Op.SELECT, tiny, x, _log_limits(b, total, inside)))


def log_in_range(b: Builder, x: int) -> int:
    """Natural logarithm of a positive, normal and finite number."""
    k, mantissa = _split(b, x)
    return b.emit(Op.FADD, *_log(b, k, b.emit(Op.FSUB, mantissa, b.const(_ONE))))


def split_positive(b: Builder, x: int) -> tuple[int, int]:
    """(k, m) with x = 2^k * m and m about between sqrt(1/2) and sqrt(2), for positive x, subnormal or not."""
    # Subnormal numbers are made normal by a power of two, which is taken back in the exponent field.
    small = b.emit(Op.FLT, x, b.const(1 << _EXPONENT_BITS))
    normal = b.emit(Op.SELECT, small, b.emit(Op.FMUL, x, b.f32(2.0**23)), x)
    k, mantissa = _split(b, normal)
    return b.emit(Op.SUB, k, b.emit(Op.SELECT, small, b.const(23), b.const(0))), mantissa


def _split(b: Builder, x: int) -> tuple[int, int]:
    """(k, m) with x = 2^k * m and m about between sqrt(1/2) and sqrt(2), for positive normal x."""
    above = b.emit(Op.SUB, x, b.const(0x3F3504F3))  # the word of sqrt(1/2)
    k = b.emit(Op.SAR, above, b.const(_EXPONENT_BITS))
    return k, b.emit(Op.SUB, x, b.emit(Op.SHL, k, b.const(_EXPONENT_BITS)))


def _log(b: Builder, k: int, f: int) -> tuple[int, int]:
    """k * ln(2) + log(1 + f), as a number and a small rest, from the integer k."""
    n = b.emit(Op.I2F, k)
    base = b.emit(Op.FMUL, n, b.f32(_LN2_SHORT))
    # What the rounding of base + f loses is kept: a sum of two roundings would cost half a unit more.
    total = b.emit(Op.FADD, base, f)
    lost = b.emit(Op.FSUB, f, b.emit(Op.FSUB, total, base))
    rest = b.emit(Op.FFMA, n, b.f32(_LN2_REST), lost)
    tail = b.emit(Op.FFMA, b.emit(Op.FMUL, f, f), b.polynomial(f, _LOG), rest)
    return total, tail


def _log_limits(b: Builder, x: int, inside: int) -> int:
    """`inside` for positive finite x, and the limits elsewhere."""
    infinity = b.const(int(INFINITY))
    positive = b.emit(Op.SELECT, b.emit(Op.FLT, x, infinity), inside, infinity)
    zero = b.emit(Op.FEQ, x, b.const(0))
    outside = b.emit(Op.SELECT, zero, b.const(int(INFINITY | SIGN)), b.const(int(NAN)))
    return b.emit(Op.SELECT, b.emit(Op.FLT, b.const(0), x), positive, outside)
