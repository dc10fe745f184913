"""The primitives of pol on 32-bit words, in NumPy: the reference that every other implementation is tested against."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pol.errors import OperationalError

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]

SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITY = np.uint32(0x7F800000)
NAN = np.uint32(0x7FC00000)
"""The one NaN that a primitive yields."""

_WORD_BITS = 32


class Op(IntEnum):
    """Primitive codes; see docs/spec/arithmetic.md, "Primitives"."""

    FADD = 0x01
    FSUB = 0x02
    FMUL = 0x03
    FDIV = 0x04
    FFMA = 0x05
    FSQRT = 0x06
    FMIN = 0x07
    FMAX = 0x08
    FEQ = 0x09
    FLT = 0x0A
    FLE = 0x0B
    FNEG = 0x0C
    FABS = 0x0D
    FRINT = 0x0E
    F2I = 0x10
    I2F = 0x11
    F2U = 0x12
    U2F = 0x13
    F2LHI = 0x14
    F2LLO = 0x15
    L2F = 0x16
    RBF16 = 0x17
    RF16 = 0x18
    ADD = 0x20
    SUB = 0x21
    MUL = 0x22
    MULHI = 0x23
    AND = 0x24
    OR = 0x25
    XOR = 0x26
    SHL = 0x27
    SHR = 0x28
    SAR = 0x29
    EQ = 0x2A
    LTU = 0x2B
    LTS = 0x2C
    SELECT = 0x30
    MOV = 0x31


def apply(op: Op, a: Words, b: Words | None = None, c: Words | None = None) -> Words:
    """Result words of one primitive, element by element; operands are uint32 arrays and broadcast.

    Raises ValueError if the number of operands is not `ARITY[op]`, TypeError if one is not a uint32 array,
    OperationalError if this thread's floating-point unit does not round to nearest or flushes subnormal numbers.
    """
    operands = [operand for operand in (a, b, c) if operand is not None]
    if len(operands) != ARITY[op]:
        raise ValueError(f"{Op(op).name} takes {ARITY[op]} operands, got {len(operands)}")
    for operand in operands:
        if operand.dtype != np.uint32:
            raise TypeError(f"{Op(op).name} takes words (uint32 arrays), got {operand.dtype}; use .view(np.uint32)")
    if op < Op.ADD:
        _require_ieee_arithmetic()
    # NumPy reports overflow, invalid operations and signalling NaNs as warnings; here every primitive is total.
    with np.errstate(all="ignore"):
        return np.asarray(_RULES[op](*operands))


def is_nan(a: Words) -> npt.NDArray[np.bool_]:
    """True where the word is a NaN, of any payload."""
    return (a & MAGNITUDE) > INFINITY


def _canonical(x: Floats) -> Words:
    """The words of x with every NaN replaced by the canonical one (rule 2)."""
    words = np.asarray(x).view(np.uint32)
    return np.where(is_nan(words), NAN, words)


def _fused_multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c rounded once.

    In float64 the product of two binary32 numbers is exact and nothing over- or underflows. The sum is rounded to odd:
    the exact error of the addition (TwoSum) says whether and on which side the rounded sum missed, and an inexact sum
    with an even last bit moves to its odd neighbor on the side of the exact value. 53 bits rounded to odd keep enough
    for the final rounding to 24 bits or fewer to be the rounding of the exact value.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = np.asarray(product + addend)
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    # Adding one to the bits of a binary64 number moves it away from zero.
    away = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    odd = np.asarray(np.where(inexact, bits + away, bits)).view(np.float64)
    return odd.astype(np.float32)


def _smaller(a: Words, b: Words) -> Words:
    x, y = a.view(np.float32), b.view(np.float32)
    # Equal numbers differ in bits only for zeros of opposite sign: `|` keeps the minus.
    ordered = np.where(x < y, a, np.where(x == y, a | b, b))
    return np.where(is_nan(a) | is_nan(b), NAN, ordered)


def _larger(a: Words, b: Words) -> Words:
    x, y = a.view(np.float32), b.view(np.float32)
    ordered = np.where(x > y, a, np.where(x == y, a & b, b))
    return np.where(is_nan(a) | is_nan(b), NAN, ordered)


def _to_integer(a: Words) -> Words:
    wide = np.trunc(a.view(np.float32).astype(np.float64))
    inside = np.clip(np.where(is_nan(a), 0.0, wide), -(2.0**31), 2.0**31 - 1)
    return np.asarray(inside.astype(np.int32)).view(np.uint32)


def _from_integer(a: Words) -> Words:
    return np.asarray(a.view(np.int32).astype(np.float32)).view(np.uint32)


def _to_unsigned(a: Words) -> Words:
    wide = np.trunc(a.view(np.float32).astype(np.float64))
    return np.asarray(np.clip(np.where(is_nan(a), 0.0, wide), 0.0, 2.0**32 - 1).astype(np.uint32))


def _from_unsigned(a: Words) -> Words:
    return np.asarray(a.astype(np.float32)).view(np.uint32)


def _to_long(a: Words) -> npt.NDArray[np.uint64]:
    wide = np.trunc(a.view(np.float32).astype(np.float64))
    beyond = wide >= 2.0**63  # the greatest i64 is no binary64 number
    inside = np.maximum(np.where(is_nan(a) | beyond, 0.0, wide), -(2.0**63)).astype(np.int64)
    return np.asarray(np.where(beyond, np.int64(2**63 - 1), inside)).view(np.uint64)


def _to_long_high(a: Words) -> Words:
    return (_to_long(a) >> np.uint64(_WORD_BITS)).astype(np.uint32)


def _to_long_low(a: Words) -> Words:
    return _to_long(a).astype(np.uint32)


def _from_long(a: Words, b: Words) -> Words:
    joined = np.asarray(a.astype(np.uint64) << np.uint64(_WORD_BITS) | b)
    return np.asarray(joined.view(np.int64).astype(np.float32)).view(np.uint32)


def _round_to_bf16(a: Words) -> Words:
    # bf16 is the upper half of binary32. A carry out of the significand belongs in the exponent.
    odd = (a >> np.uint32(16)) & np.uint32(1)
    return np.where(is_nan(a), NAN, (a + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000))


def _round_to_f16(a: Words) -> Words:
    return _canonical(a.view(np.float32).astype(np.float16).astype(np.float32))


def _high_product(a: Words, b: Words) -> Words:
    return ((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(_WORD_BITS)).astype(np.uint32)


def _arithmetic_shift(a: Words, b: Words) -> Words:
    shifted = a.view(np.int32) >> np.minimum(b, np.uint32(_WORD_BITS - 1)).astype(np.int32)
    return np.asarray(shifted).view(np.uint32)


def _select(a: Words, b: Words, c: Words) -> Words:
    return np.where(a != 0, b, c)


def _shift(shift: Callable[[Words, Words], Words]) -> Callable[[Words, Words], Words]:
    def total(a: Words, b: Words) -> Words:
        return np.where(b < _WORD_BITS, shift(a, b & np.uint32(_WORD_BITS - 1)), np.uint32(0))

    return total


def _float(function: Callable[..., Floats]) -> Callable[..., Words]:
    """A rule on words from a correctly rounded function on binary32 numbers."""

    def rule(*operands: Words) -> Words:
        return _canonical(function(*(operand.view(np.float32) for operand in operands)))

    return rule


def _comparison(function: Callable[..., npt.NDArray[np.bool_]], view: Any) -> Callable[..., Words]:
    """A rule that compares its two operands, read as `view`, and yields 1 or 0."""

    def rule(a: Words, b: Words) -> Words:
        return np.asarray(function(a.view(view), b.view(view))).astype(np.uint32)

    return rule


_RULES: Mapping[Op, Callable[..., Words]] = {
    Op.FADD: _float(np.add),
    Op.FSUB: _float(np.subtract),
    Op.FMUL: _float(np.multiply),
    Op.FDIV: _float(np.divide),
    Op.FFMA: _float(_fused_multiply_add),
    Op.FSQRT: _float(np.sqrt),
    Op.FMIN: _smaller,
    Op.FMAX: _larger,
    Op.FEQ: _comparison(np.equal, np.float32),
    Op.FLT: _comparison(np.less, np.float32),
    Op.FLE: _comparison(np.less_equal, np.float32),
    Op.FNEG: lambda a: np.where(is_nan(a), NAN, a ^ SIGN),
    Op.FABS: lambda a: np.where(is_nan(a), NAN, a & MAGNITUDE),
    Op.FRINT: _float(np.rint),
    Op.F2I: _to_integer,
    Op.I2F: _from_integer,
    Op.F2U: _to_unsigned,
    Op.U2F: _from_unsigned,
    Op.F2LHI: _to_long_high,
    Op.F2LLO: _to_long_low,
    Op.L2F: _from_long,
    Op.RBF16: _round_to_bf16,
    Op.RF16: _round_to_f16,
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.MULHI: _high_product,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
    Op.SHL: _shift(np.left_shift),
    Op.SHR: _shift(np.right_shift),
    Op.SAR: _arithmetic_shift,
    Op.EQ: _comparison(np.equal, np.uint32),
    Op.LTU: _comparison(np.less, np.uint32),
    Op.LTS: _comparison(np.less, np.int32),
    Op.SELECT: _select,
    Op.MOV: np.positive,
}

_CONVERSIONS = {op for op in Op if Op.F2I <= op < Op.ADD}
_UNARY = (_CONVERSIONS - {Op.L2F}) | {Op.FSQRT, Op.FNEG, Op.FABS, Op.FRINT, Op.MOV}
_TERNARY = {Op.FFMA, Op.SELECT}

ARITY: Mapping[Op, int] = MappingProxyType({op: 1 if op in _UNARY else 3 if op in _TERNARY else 2 for op in Op})
"""Number of operands of each primitive."""


# Sums that only round-to-nearest-even with gradual underflow gets right: two ties (one down, one up), a subnormal
# operand, a subnormal result.
_PROBE_A = np.array([0x3F800000, 0x3F800001, 0x00000001, 0x00800000], np.uint32).view(np.float32)
_PROBE_B = np.array([0x33800000, 0x33800000, 0x00000001, 0x80000001], np.uint32).view(np.float32)
_PROBE_SUM = np.array([0x3F800000, 0x3F800002, 0x00000002, 0x007FFFFF], np.uint32).tobytes()


def _require_ieee_arithmetic() -> None:
    # Other libraries may make a thread flush subnormals or round otherwise; the bits would then be silently wrong.
    if (_PROBE_A + _PROBE_B).tobytes() != _PROBE_SUM:
        raise OperationalError(
            "this thread's floating-point unit flushes subnormal numbers or does not round to nearest; "
            "undo the setting (for example torch.set_flush_denormal(False)) and run again"
        )
