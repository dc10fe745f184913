"""Elementwise: one map.

Operands are broadcast, and integers become binary32 numbers where the formula computes in them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import compress

from pol.arithmetic import functions
from pol.arithmetic.functions import log
from pol.arithmetic.registers import (
    Float,
    Function,
    R,
    Register,
    Word,
    fma,
    maximum,
    minimum,
    select,
    sqrt,
    to_float,
    to_word,
)
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Formula
from pol.graph.lowering.rule_table import Lowered, lowers
from pol.graph.lowering.values import Value, expand, scalar
from pol.graph.tensor_type import DType


def elementwise(
    call: Call, operands: Sequence[Value | float], formula: Formula, compute: DType | None = None, part: str = ""
) -> Value:
    """A map over the broadcast operands; integers are converted where the formula computes in binary32."""
    compute = call.dtype if compute is None else compute
    values = [scalar(item, compute) if isinstance(item, bool | int | float) else item for item in operands]
    shape = call.output.shape
    if compute is DType.I32 and DType.F32 in [value.dtype for value in values]:
        raise call.unsupported("a binary32 operand in an integer operation; convert it explicitly")

    def converted(*words: Register) -> Register:
        is_real = compute is DType.F32
        return formula(*[to_float(word) if is_real and isinstance(word, Word) else word for word in words])

    return call.emitter.map(shape, call.dtype, [expand(value, shape) for value in values], converted, part)


def binary32_only(call: Call) -> None:
    """Refuse another result."""
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 results are defined")


_RELATIONS: Mapping[str, Callable[..., Word]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@lowers(
    *(f"aten.{relation}.{overload}" for relation in _RELATIONS for overload in ("Scalar", "Tensor")),
    defines="1 or 0; as integers only if both are integers; NaN is unequal to everything",
)
def _compare(call: Call) -> Value:
    operands = [call.operand(0), call.operand(1)]
    types = [type(item) if isinstance(item, int | float) else item.dtype for item in operands]
    compute = DType.F32 if float in types or DType.F32 in types else DType.I32
    return elementwise(call, operands, _RELATIONS[call.node.operation.split(".")[1]], compute)


def _scaled_sum(call: Call, sign: int) -> Value:
    """a + sign * alpha * b."""
    # The .Scalar overloads take alpha by position, the .Tensor overloads by keyword; both default to 1.
    alpha = sign * call.number(2, "alpha", 1)

    def formula(a: R, b: R) -> R:
        if alpha == 1:
            return a + b
        if alpha == -1:
            return a - b
        if isinstance(b, Float):
            return fma(b, alpha, a)
        return a + b * _wrapped(int(alpha))

    return elementwise(call, [call.operand(0), call.operand(1)], formula)


def _wrapped(number: int) -> int:
    """The i32 of the same 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


@lowers("aten.add.Tensor", "aten.add.Scalar", defines="FADD; with alpha FFMA(b, alpha, a); integers: ADD, MUL")
def _add(call: Call) -> Value:
    return _scaled_sum(call, 1)


@lowers("aten.sub.Tensor", "aten.sub.Scalar", defines="FSUB; with alpha FFMA(b, -alpha, a); integers: SUB, MUL")
def _sub(call: Call) -> Value:
    return _scaled_sum(call, -1)


@lowers("aten.mul.Tensor", "aten.mul.Scalar", defines="FMUL; integers: MUL")
def _mul(call: Call) -> Value:
    return elementwise(call, call.operands(), operator.mul)


@lowers("aten.div.Tensor", "aten.div.Scalar", defines="FDIV, float32 results only")
def _div(call: Call) -> Value:
    binary32_only(call)
    return elementwise(call, call.operands(), operator.truediv)


@lowers("aten.maximum.default", defines="FMAX; integers: SELECT by LTS", is_exact=True)
def _maximum(call: Call) -> Value:
    return elementwise(call, [call.operand(0), call.operand(1)], greater)


@lowers("aten.minimum.default", defines="FMIN; integers: SELECT by LTS", is_exact=True)
def _minimum(call: Call) -> Value:
    return elementwise(call, [call.operand(0), call.operand(1)], smaller)


def greater(a: R, b: R) -> R:
    """The greater of two words; a NaN wins."""
    if isinstance(a, Float):
        return maximum(a, b)
    return select(a < b, b, a)


def smaller(a: R, b: R) -> R:
    """The smaller of two words; a NaN wins."""
    if isinstance(a, Float):
        return minimum(a, b)
    return select(a < b, a, b)


@lowers("aten.sqrt.default", defines="FSQRT")
def _sqrt(call: Call) -> Value:
    binary32_only(call)
    return elementwise(call, call.operands(), sqrt)


@lowers("aten.abs.default", defines="FABS; integers: SELECT by sign", is_exact=True)
def _abs(call: Call) -> Value:
    return elementwise(call, [call.tensor(0)], abs)


@lowers("aten.neg.default", defines="FNEG; integers: 0 - x", is_exact=True)
def _neg(call: Call) -> Value:
    return elementwise(call, [call.tensor(0)], operator.neg)


_FUNCTIONS = (
    *(functions.exp, functions.exp2, functions.expm1, functions.log, functions.log2, functions.log1p),
    *(functions.sin, functions.cos, functions.erf, functions.tanh, functions.sigmoid, functions.rsqrt),
    functions.reciprocal,
)


def _of(function: Function[Float]) -> Lowered:
    return lambda call: elementwise(call, [call.operand(0)], function, DType.F32)


for _function in _FUNCTIONS:
    lowers(f"aten.{_function.__name__}.default", defines=f"the function `{_function.__name__}`")(_of(_function))


@lowers("aten.log10.default", defines="the function `log`, FMUL by 1 / log(10)")
def _log10(call: Call) -> Value:
    return elementwise(call, [call.operand(0)], lambda x: log(x) * (1 / math.log(10)), DType.F32)


@lowers("aten.sign.default", "aten.sgn.default", defines="(0 < x) - (x < 0) as binary32, or as an integer")
def _sign(call: Call) -> Value:
    if call.dtype is not DType.F32:
        return elementwise(call, [call.tensor(0)], lambda x: (x > 0) - (x < 0))
    return elementwise(call, [call.tensor(0)], lambda x: to_float((x > 0.0) - (x < 0.0)), DType.F32)


@lowers("aten.isnan.default", defines="x != x")
def _is_nan(call: Call) -> Value:
    value = call.tensor(0)
    if value.dtype is not DType.F32:
        raise call.unsupported("integers are never NaN")
    return elementwise(call, [value], lambda x: x != x, DType.F32)  # noqa: PLR0124  # the definition


@lowers("aten.isinf.default", defines="|x| = infinity")
def _is_infinite(call: Call) -> Value:
    value = call.tensor(0)
    if value.dtype is not DType.F32:
        raise call.unsupported("integers are never infinite")
    return elementwise(call, [value], lambda x: abs(x) == math.inf, DType.F32)


@lowers(
    *(f"aten.{name}.{overload}" for name in ("clamp", "clamp_min", "clamp_max") for overload in ("default", "Tensor")),
    defines="FMAX with min, then FMIN with max; integers: SELECT by LTS",
)
def _clamp(call: Call) -> Value:
    """Either bound may be missing, a number or a tensor."""
    name = call.node.operation
    low = None if "clamp_max" in name else call.argument(1, "min")
    high = call.argument(1, "max") if "clamp_max" in name else call.argument(2, "max")
    given = [bound is not None for bound in (low, high)]
    operands = [call.tensor(0), *(call.as_operand(bound) for bound in (low, high) if bound is not None)]

    def formula(x: R, *bounds: R) -> R:
        for bound, inside in zip(bounds, compress((greater, smaller), given), strict=True):
            x = inside(x, bound)
        return x

    return elementwise(call, operands, formula)


@lowers(
    *("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"),
    defines="SELECT; both choices of one type",
)
def _where(call: Call) -> Value:
    condition, yes, no = (call.operand(position) for position in range(3))
    if isinstance(condition, int | float):
        raise call.unsupported("the condition is not a tensor")
    values = [scalar(item, call.dtype) if isinstance(item, int | float) else item for item in (yes, no)]
    if any(value.dtype is not call.dtype for value in values):
        raise call.unsupported("both choices need the same type; convert one explicitly")
    shape = call.output.shape
    return call.emitter.map(shape, call.dtype, [expand(value, shape) for value in (condition, *values)], select)


@lowers(
    "aten._to_copy.default",
    defines="I2F, F2I (towards zero), x != 0 for a boolean, or to bfloat16; types with a word only",
)
def _to_copy(call: Call) -> Value:
    value = call.tensor(0)
    target = call.output.dtype
    if target == call.torch_dtype(0):
        return value
    if target == "bool":
        return elementwise(call, [value, 0], operator.ne, value.dtype)
    if call.dtype is value.dtype:
        return value
    return call.emitter.map(value.shape, call.dtype, [value], to_float if call.dtype is DType.F32 else to_word)


GATES: Mapping[str, Callable[..., Word]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


@lowers("aten.logical_and.default", defines="AND of x != 0")
@lowers("aten.logical_or.default", defines="OR of x != 0")
@lowers("aten.logical_xor.default", defines="XOR of x != 0")
def _logical(call: Call) -> Value:
    return elementwise(call, [_truth(call, 0), _truth(call, 1)], GATES[call.node.operation[13:].split(".")[0]])


def _truth(call: Call, position: int) -> Value:
    """1 where a word of an argument is unequal to zero, else 0."""
    value = call.tensor(position)
    if call.torch_dtype(position) == "bool":
        return value
    return call.emitter.map(value.shape, DType.I32, [value], lambda x: x != 0, f"truth_{position}")


@lowers("aten.logical_not.default", defines="x = 0")
def _logical_not(call: Call) -> Value:
    value = call.tensor(0)
    return elementwise(call, [value], lambda x: x == 0, value.dtype)
