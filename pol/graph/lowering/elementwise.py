"""Elementwise operations: one map each, with broadcasting and torch's promotion of integers to binary32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.program import Builder, ScalarProgram
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Formula
from pol.graph.lowering.values import Value, expand, scalar
from pol.graph.types import DType

GELU_CUBIC = 0.044715
GELU_SCALE = math.sqrt(2 / math.pi)

Lowered = Callable[[Call], Value]


def elementwise(
    call: Call, operands: Sequence[Value | float], formula: Formula, compute: DType | None = None, part: str = ""
) -> Value:
    """A map over the broadcast operands; integers are converted where the formula computes in binary32."""
    compute = call.dtype if compute is None else compute
    values = [scalar(item, compute) if isinstance(item, bool | int | float) else item for item in operands]
    shape = call.output.shape
    dtypes = [value.dtype for value in values]
    if compute is DType.I32 and DType.F32 in dtypes:
        raise call.unsupported("a binary32 operand in an integer operation; convert it explicitly")

    def converted(b: Builder, regs: list[int]) -> int:
        ready = [
            b.emit(Op.I2F, reg) if compute is DType.F32 and dtype is DType.I32 else reg
            for reg, dtype in zip(regs, dtypes, strict=True)
        ]
        return formula(b, ready)

    return call.emitter.map(shape, call.dtype, [expand(value, shape) for value in values], converted, part)


def _primitive(floating: Op, integer: Op | None = None) -> Lowered:
    """The same primitive on all operands, another one for integers."""

    def lower(call: Call) -> Value:
        op = floating if call.dtype is DType.F32 else integer
        if op is None:
            raise call.unsupported("only float32 results are defined")
        operands = [call.operand(position) for position in range(len(call.node.arguments))]
        return elementwise(call, operands, lambda b, regs: b.emit(op, *regs))

    return lower


def _function(program: Callable[[], ScalarProgram]) -> Lowered:
    """A function of one binary32 number."""
    return lambda call: elementwise(call, [call.operand(0)], lambda b, regs: b.call(program(), *regs), DType.F32)


def _scaled_sum(sign: int) -> Lowered:
    """a + sign * alpha * b; with alpha the product is fused into the sum and rounds once."""

    def lower(call: Call) -> Value:
        # The .Scalar overloads take alpha by position, the .Tensor overloads by keyword; both default to 1.
        alpha = sign * call.number(2, "alpha", 1)
        operands = [call.operand(0), call.operand(1)]
        floating = call.dtype is DType.F32

        def formula(b: Builder, regs: list[int]) -> int:
            if alpha == 1:
                return b.emit(Op.FADD if floating else Op.ADD, *regs)
            if alpha == -1:
                return b.emit(Op.FSUB if floating else Op.SUB, *regs)
            if floating:
                return b.emit(Op.FFMA, regs[1], b.f32(alpha), regs[0])
            return b.emit(Op.ADD, regs[0], b.emit(Op.MUL, regs[1], b.const(int(alpha) % 2**32)))

        return elementwise(call, operands, formula)

    return lower


def _compare(relation: str) -> Lowered:
    def lower(call: Call) -> Value:
        operands = [call.operand(0), call.operand(1)]
        kinds = [
            DType.F32 if isinstance(item, float) else DType.I32 if isinstance(item, int) else item.dtype
            for item in operands
        ]
        compute = DType.F32 if DType.F32 in kinds else DType.I32
        return elementwise(call, operands, lambda b, regs: compared(b, relation, compute, regs[0], regs[1]), compute)

    return lower


def compared(b: Builder, relation: str, dtype: DType, left: int, right: int) -> int:
    """Register that holds 1 where `left relation right`; a NaN is unequal to everything."""
    one = b.const(1)
    if relation in {"gt", "ge"}:
        left, right, relation = right, left, {"gt": "lt", "ge": "le"}[relation]
    if dtype is DType.F32:
        if relation == "ne":
            return b.emit(Op.XOR, b.emit(Op.FEQ, left, right), one)
        return b.emit({"eq": Op.FEQ, "lt": Op.FLT, "le": Op.FLE}[relation], left, right)
    if relation == "le":
        return b.emit(Op.XOR, b.emit(Op.LTS, right, left), one)
    if relation == "lt":
        return b.emit(Op.LTS, left, right)
    equal = b.emit(Op.EQ, left, right)
    return equal if relation == "eq" else b.emit(Op.XOR, equal, one)


def _negate(b: Builder, register: int) -> int:
    return b.emit(Op.EQ, register, b.const(0))


def _neg(call: Call) -> Value:
    if call.dtype is DType.F32:
        return elementwise(call, [call.tensor(0)], lambda b, regs: b.emit(Op.FNEG, *regs))
    return elementwise(call, [call.tensor(0)], lambda b, regs: b.emit(Op.SUB, b.const(0), *regs))


def _relu(call: Call) -> Value:
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    return elementwise(call, [call.tensor(0), 0.0], lambda b, regs: b.emit(Op.FMAX, *regs))


def _threshold_backward(call: Call) -> Value:
    operands = [call.tensor(0), call.tensor(1), float(call.number(2))]
    return elementwise(
        call, operands, lambda b, regs: b.emit(Op.SELECT, b.emit(Op.FLE, regs[1], regs[2]), b.f32(0.0), regs[0])
    )


def _tanh_backward(call: Call) -> Value:
    def formula(b: Builder, regs: list[int]) -> int:
        slope = b.emit(Op.FSUB, b.f32(1.0), b.emit(Op.FMUL, regs[1], regs[1]))
        return b.emit(Op.FMUL, regs[0], slope)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _sigmoid_backward(call: Call) -> Value:
    def formula(b: Builder, regs: list[int]) -> int:
        slope = b.emit(Op.FMUL, b.emit(Op.FSUB, b.f32(1.0), regs[1]), regs[1])
        return b.emit(Op.FMUL, regs[0], slope)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _sign(call: Call) -> Value:
    def formula(b: Builder, regs: list[int]) -> int:
        zero = b.f32(0.0)
        difference = b.emit(Op.SUB, b.emit(Op.FLT, zero, regs[0]), b.emit(Op.FLT, regs[0], zero))
        return b.emit(Op.I2F, difference)

    return elementwise(call, [call.tensor(0)], formula, DType.F32)


def _gelu_parts(b: Builder, x: int) -> tuple[int, int]:
    """x^2 and tanh(sqrt(2 / pi) * (x + 0.044715 x^3)); the exact form needs erf, which has no definition."""
    square = b.emit(Op.FMUL, x, x)
    inner = b.emit(Op.FFMA, b.emit(Op.FMUL, square, b.f32(GELU_CUBIC)), x, x)
    return square, b.call(functions.tanh(), b.emit(Op.FMUL, inner, b.f32(GELU_SCALE)))


def _gelu_is_tanh(call: Call, position: int) -> None:
    if call.argument(position, "approximate", "none") != "tanh":
        raise call.unsupported("the exact GELU has no definition; use approximate='tanh'")


def _gelu(call: Call) -> Value:
    """x / 2 * (1 + tanh(...))."""
    _gelu_is_tanh(call, 1)

    def formula(b: Builder, regs: list[int]) -> int:
        _, bend = _gelu_parts(b, regs[0])
        return b.emit(Op.FMUL, b.emit(Op.FMUL, regs[0], b.f32(0.5)), b.emit(Op.FADD, bend, b.f32(1.0)))

    return elementwise(call, [call.tensor(0)], formula)


def _gelu_backward(call: Call) -> Value:
    """g * ((1 + T) / 2 + x / 2 * (1 - T^2) * sqrt(2 / pi) * (1 + 3 * 0.044715 x^2)), T the hyperbolic tangent."""
    _gelu_is_tanh(call, 2)

    def formula(b: Builder, regs: list[int]) -> int:
        gradient, x = regs
        one, half = b.f32(1.0), b.f32(0.5)
        square, bend = _gelu_parts(b, x)
        flat = b.emit(Op.FMUL, b.emit(Op.FADD, bend, one), half)
        slope = b.emit(Op.FSUB, one, b.emit(Op.FMUL, bend, bend))
        inner = b.emit(Op.FMUL, b.emit(Op.FFMA, square, b.f32(3 * GELU_CUBIC), one), b.f32(GELU_SCALE))
        steep = b.emit(Op.FMUL, b.emit(Op.FMUL, b.emit(Op.FMUL, x, half), slope), inner)
        return b.emit(Op.FMUL, gradient, b.emit(Op.FADD, flat, steep))

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _clamp(call: Call) -> Value:
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    low, high = call.argument(1, "min"), call.argument(2, "max")

    def formula(b: Builder, regs: list[int]) -> int:
        result = regs[0]
        if isinstance(low, int | float):
            result = b.emit(Op.FMAX, result, b.f32(low))
        if isinstance(high, int | float):
            result = b.emit(Op.FMIN, result, b.f32(high))
        return result

    return elementwise(call, [call.tensor(0)], formula)


def _where(call: Call) -> Value:
    condition, yes, no = (call.operand(position) for position in range(3))
    if isinstance(condition, int | float):
        raise call.unsupported("the condition is not a tensor")
    values = [scalar(item, call.dtype) if isinstance(item, int | float) else item for item in (yes, no)]
    if any(value.dtype is not call.dtype for value in values):
        raise call.unsupported("both choices need the same type; convert one explicitly")
    shape = call.output.shape
    arguments = [expand(value, shape) for value in (condition, *values)]
    return call.emitter.map(shape, call.dtype, arguments, lambda b, regs: b.emit(Op.SELECT, *regs))


def _power(call: Call) -> Value:
    exponent = call.number(1)
    if call.dtype is not DType.F32 or exponent not in {0.5, -0.5, -1, -2, 1, 2, 3, 4}:
        raise call.unsupported(f"the power {exponent} has no definition; powers are 1, 2, 3, 4, -1, -2, 0.5 and -0.5")

    def formula(b: Builder, regs: list[int]) -> int:
        base = regs[0]
        if exponent in {0.5, -0.5}:
            result = b.emit(Op.FSQRT, base)
        else:
            square = b.emit(Op.FMUL, base, base)
            powers = {1: base, 2: square, 3: b.emit(Op.FMUL, square, base), 4: b.emit(Op.FMUL, square, square)}
            result = powers[int(abs(exponent))]
        return b.emit(Op.FDIV, b.f32(1.0), result) if exponent < 0 else result

    return elementwise(call, [call.tensor(0)], formula)


def _to_copy(call: Call) -> Value:
    value = call.tensor(0)
    target = call.output.dtype
    if target == call.torch_dtype(0) or (target in {"int32", "int64"} and value.dtype is DType.I32):
        return value
    if target == "bool":
        return elementwise(call, [value, 0], lambda b, regs: compared(b, "ne", value.dtype, *regs), value.dtype)
    op = Op.I2F if call.dtype is DType.F32 else Op.F2I
    return call.emitter.map(value.shape, call.dtype, [value], lambda b, regs: b.emit(op, *regs))


def _logical(op: Op) -> Lowered:
    def lower(call: Call) -> Value:
        values = [call.tensor(0), call.tensor(1)]
        if call.torch_dtype(0) != "bool" or call.torch_dtype(1) != "bool":
            raise call.unsupported("the operands must be booleans; compare with zero first")
        return elementwise(call, values, lambda b, regs: b.emit(op, *regs))

    return lower


def _not(call: Call) -> Value:
    if call.torch_dtype(0) != "bool":
        raise call.unsupported("the operand must be boolean; compare with zero first")
    return elementwise(call, [call.tensor(0)], lambda b, regs: _negate(b, regs[0]))


_COMPARISONS: Mapping[str, Lowered] = {
    f"aten.{relation}.{overload}": _compare(relation)
    for relation in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Scalar", "Tensor")
}

ELEMENTWISE: Mapping[str, Lowered] = {
    **_COMPARISONS,
    "aten.add.Tensor": _scaled_sum(1),
    "aten.add.Scalar": _scaled_sum(1),
    "aten.sub.Tensor": _scaled_sum(-1),
    "aten.sub.Scalar": _scaled_sum(-1),
    "aten.mul.Tensor": _primitive(Op.FMUL, Op.MUL),
    "aten.mul.Scalar": _primitive(Op.FMUL, Op.MUL),
    "aten.div.Tensor": _primitive(Op.FDIV),
    "aten.div.Scalar": _primitive(Op.FDIV),
    "aten.maximum.default": _primitive(Op.FMAX),
    "aten.minimum.default": _primitive(Op.FMIN),
    "aten.sqrt.default": _primitive(Op.FSQRT),
    "aten.abs.default": _primitive(Op.FABS),
    "aten.neg.default": _neg,
    "aten.exp.default": _function(functions.exp),
    "aten.log.default": _function(functions.log),
    "aten.expm1.default": _function(functions.expm1),
    "aten.log1p.default": _function(functions.log1p),
    "aten.erf.default": _function(functions.erf),
    "aten.exp2.default": _function(functions.exp2),
    "aten.log2.default": _function(functions.log2),
    "aten.sin.default": _function(functions.sin),
    "aten.cos.default": _function(functions.cos),
    "aten.tanh.default": _function(functions.tanh),
    "aten.sigmoid.default": _function(functions.sigmoid),
    "aten.rsqrt.default": _function(functions.rsqrt),
    "aten.reciprocal.default": _function(functions.reciprocal),
    "aten.relu.default": _relu,
    "aten.threshold_backward.default": _threshold_backward,
    "aten.tanh_backward.default": _tanh_backward,
    "aten.sigmoid_backward.default": _sigmoid_backward,
    "aten.gelu.default": _gelu,
    "aten.gelu_backward.default": _gelu_backward,
    "aten.sign.default": _sign,
    "aten.sgn.default": _sign,
    "aten.clamp.default": _clamp,
    "aten.clamp_min.default": _clamp,
    "aten.where.self": _where,
    "aten.where.ScalarOther": _where,
    "aten.where.ScalarSelf": _where,
    "aten.pow.Tensor_Scalar": _power,
    "aten._to_copy.default": _to_copy,
    "aten.logical_and.default": _logical(Op.AND),
    "aten.bitwise_and.Tensor": _logical(Op.AND),
    "aten.logical_or.default": _logical(Op.OR),
    "aten.bitwise_or.Tensor": _logical(Op.OR),
    "aten.logical_not.default": _not,
    "aten.bitwise_not.default": _not,
}
