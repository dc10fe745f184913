"""Elementwise operations: one map each, with broadcasting and torch's promotion of integers to binary32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Formula
from pol.graph.lowering.values import Value, expand, scalar
from pol.graph.tensor_type import DType

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


def _neg(call: Call) -> Value:
    if call.dtype is DType.F32:
        return elementwise(call, [call.tensor(0)], lambda b, regs: b.emit(Op.FNEG, *regs))
    return elementwise(call, [call.tensor(0)], lambda b, regs: b.emit(Op.SUB, b.const(0), *regs))


def _sign(call: Call) -> Value:
    def formula(b: Builder, regs: list[int]) -> int:
        zero = b.f32(0.0)
        difference = b.emit(Op.SUB, b.emit(Op.FLT, zero, regs[0]), b.emit(Op.FLT, regs[0], zero))
        return b.emit(Op.I2F, difference)

    return elementwise(call, [call.tensor(0)], formula, DType.F32)


def _extreme(is_greater: bool) -> Lowered:
    """The greater or the smaller of two; a NaN wins."""

    def lower(call: Call) -> Value:
        return elementwise(
            call, [call.operand(0), call.operand(1)], lambda b, regs: extreme(b, call, is_greater, *regs)
        )

    return lower


def extreme(b: Builder, call: Call, is_greater: bool, left: int, right: int) -> int:
    """Register of the greater or the smaller of two words of the output's type."""
    if call.dtype is DType.F32:
        return b.emit(Op.FMAX if is_greater else Op.FMIN, left, right)
    return b.emit(Op.SELECT, b.emit(Op.LTS, left, right), *((right, left) if is_greater else (left, right)))


def _clamp(call: Call) -> Value:
    """First the lower bound, then the upper one; either may be missing, a number or a tensor."""
    name = call.node.operation
    low = None if "clamp_max" in name else call.argument(1, "min")
    high = call.argument(1, "max") if "clamp_max" in name else call.argument(2, "max")
    operands: list[Value | float] = [call.tensor(0)]
    sides = []
    for bound, is_greater in ((low, True), (high, False)):
        if bound is not None:
            operands.append(call.as_operand(bound))
            sides.append(is_greater)

    def formula(b: Builder, regs: list[int]) -> int:
        result = regs[0]
        for bound, is_greater in zip(regs[1:], sides, strict=True):
            result = extreme(b, call, is_greater, result, bound)
        return result

    return elementwise(call, operands, formula)


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


def _to_copy(call: Call) -> Value:
    value = call.tensor(0)
    target = call.output.dtype
    if target == call.torch_dtype(0):
        return value
    if target == "bool":
        return elementwise(call, [value, 0], lambda b, regs: compared(b, "ne", value.dtype, *regs), value.dtype)
    if call.dtype is value.dtype:
        return value
    op = Op.I2F if call.dtype is DType.F32 else Op.F2I
    return call.emitter.map(value.shape, call.dtype, [value], lambda b, regs: b.emit(op, *regs))


def _logical(op: Op) -> Lowered:
    """An operation on whether words are unequal to zero."""

    def lower(call: Call) -> Value:
        values = [call.tensor(0), call.tensor(1)]
        return elementwise(
            call,
            [_truth(call, value, position) for position, value in enumerate(values)],
            lambda b, regs: b.emit(op, *regs),
        )

    return lower


def _truth(call: Call, value: Value, position: int) -> Value:
    """1 where a word is unequal to zero, else 0."""
    if call.torch_dtype(position) == "bool":
        return value
    zero = scalar(0, value.dtype)
    return call.emitter.map(
        value.shape,
        DType.I32,
        [value, expand(zero, value.shape)],
        lambda b, regs: compared(b, "ne", value.dtype, regs[0], regs[1]),
        f"truth_{position}",
    )


def _not(call: Call) -> Value:
    value = call.tensor(0)
    return elementwise(call, [value, 0], lambda b, regs: compared(b, "eq", value.dtype, regs[0], regs[1]), value.dtype)


def _is_nan(call: Call) -> Value:
    value = call.tensor(0)
    if value.dtype is not DType.F32:
        raise call.unsupported("integers are never NaN")
    return elementwise(call, [value], lambda b, regs: compared(b, "ne", DType.F32, regs[0], regs[0]), DType.F32)


def _is_infinite(call: Call) -> Value:
    value = call.tensor(0)
    if value.dtype is not DType.F32:
        raise call.unsupported("integers are never infinite")
    infinity = math.inf
    return elementwise(
        call, [value], lambda b, regs: b.emit(Op.FEQ, b.emit(Op.FABS, regs[0]), b.f32(infinity)), DType.F32
    )


def _logarithm(base: float) -> Lowered:
    """log(x) / log(base)."""

    def formula(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FMUL, b.call(functions.log(), *regs), b.f32(1 / math.log(base)))

    return lambda call: elementwise(call, [call.operand(0)], formula, DType.F32)


def _abs(call: Call) -> Value:
    def formula(b: Builder, regs: list[int]) -> int:
        if call.dtype is DType.F32:
            return b.emit(Op.FABS, regs[0])
        return b.emit(Op.SELECT, b.emit(Op.LTS, regs[0], b.const(0)), b.emit(Op.SUB, b.const(0), regs[0]), regs[0])

    return elementwise(call, [call.tensor(0)], formula)


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
    "aten.maximum.default": _extreme(True),
    "aten.minimum.default": _extreme(False),
    "aten.sqrt.default": _primitive(Op.FSQRT),
    "aten.abs.default": _abs,
    "aten.neg.default": _neg,
    "aten.exp.default": _function(functions.exp),
    "aten.log.default": _function(functions.log),
    "aten.log10.default": _logarithm(10),
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
    "aten.sign.default": _sign,
    "aten.sgn.default": _sign,
    "aten.isnan.default": _is_nan,
    "aten.isinf.default": _is_infinite,
    "aten.clamp.default": _clamp,
    "aten.clamp.Tensor": _clamp,
    "aten.clamp_min.default": _clamp,
    "aten.clamp_min.Tensor": _clamp,
    "aten.clamp_max.default": _clamp,
    "aten.clamp_max.Tensor": _clamp,
    "aten.where.self": _where,
    "aten.where.ScalarOther": _where,
    "aten.where.ScalarSelf": _where,
    "aten.where.Scalar": _where,
    "aten._to_copy.default": _to_copy,
    "aten.logical_and.default": _logical(Op.AND),
    "aten.logical_or.default": _logical(Op.OR),
    "aten.logical_xor.default": _logical(Op.XOR),
    "aten.logical_not.default": _not,
}
