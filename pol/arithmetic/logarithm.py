"""Scalar programs around the natural logarithm."""

from math import inf, nan

from pol.arithmetic.registers import Float, Function, Word, fma, polynomial, select, shifted_with_sign, to_float

_EXPONENT_BITS = 23
_LEAST_NORMAL = 2.0**-126
_SQRT_HALF = 0x3F3504F3
"""The word of sqrt(1/2)."""

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


@Function
def log(x: Float) -> Float:
    """Natural logarithm; -inf at zeros, NaN below."""
    k, mantissa = split_positive(x)
    total, tail = _log(k, mantissa - 1.0)
    return _log_limits(x, total + tail)


@Function
def log2(x: Float) -> Float:
    """Logarithm to base 2, exact at powers of two; -inf at zeros, NaN below."""
    k, mantissa = split_positive(x)
    total, tail = _log(k, mantissa - 1.0)
    high = total + tail
    low = tail - (high - total)
    factor, factor_low = (x.real(part) for part in _LOG2_E)
    return _log_limits(x, fma(high, factor, fma(high, factor_low, low * factor)))


@Function
def log1p(x: Float) -> Float:
    """log(1 + x); -inf at -1, NaN below."""
    one = x.real(1.0)
    total = x + one
    # What the sum lost (TwoSum) goes back into the fraction, so that small x count to the last bit.
    part = total - one
    lost = (one - (total - part)) + (x - part)
    k, mantissa = _split(total)
    shrink = mantissa / total  # 2^-k, which may be subnormal
    f = fma(lost, shrink, mantissa - one)
    # Also keeps the sign of zero.
    tiny = abs(x) < 2.0**-25
    high, tail = _log(k, f)
    return select(tiny, x, _log_limits(total, high + tail))


def log_in_range(x: Float) -> Float:
    """Natural logarithm of a positive, normal and finite number."""
    k, mantissa = _split(x)
    total, tail = _log(k, mantissa - 1.0)
    return total + tail


def split_positive(x: Float) -> tuple[Word, Float]:
    """(k, m) with x = 2^k * m and m about between sqrt(1/2) and sqrt(2), for positive x, subnormal or not."""
    # Subnormal numbers are made normal by a power of two, which is taken back in the exponent field.
    small = x < _LEAST_NORMAL
    normal = select(small, x * 2.0**23, x)
    k, mantissa = _split(normal)
    return k - select(small, k.word(23), 0), mantissa


def _split(x: Float) -> tuple[Word, Float]:
    """(k, m) with x = 2^k * m and m about between sqrt(1/2) and sqrt(2), for positive normal x."""
    above = x.bits - _SQRT_HALF
    k = shifted_with_sign(above, _EXPONENT_BITS)
    return k, (x.bits - (k << _EXPONENT_BITS)).number


def _log(k: Word, f: Float) -> tuple[Float, Float]:
    """k * ln(2) + log(1 + f), as a number and a small rest, from the integer k."""
    n = to_float(k)
    base = n * _LN2_SHORT
    # What the rounding of base + f loses is kept: a sum of two roundings would cost half a unit more.
    total = base + f
    lost = f - (total - base)
    rest = fma(n, _LN2_REST, lost)
    return total, fma(f * f, polynomial(f, _LOG), rest)


def _log_limits(x: Float, inside: Float) -> Float:
    """`inside` for positive finite x, and the limits elsewhere."""
    infinity = x.real(inf)
    positive = select(x < infinity, inside, infinity)
    outside = select(x == 0.0, x.real(-inf), nan)
    return select(x > 0.0, positive, outside)
