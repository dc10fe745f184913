"""Softmax, its logarithm, and their gradients: as few readings of the big tensor as the formulas allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.folds import FLOAT_SUM, MAXIMUM, fold_terms, reduce, restored
from pol.graph.lowering.values import Value, expand
from pol.graph.tensor_type import DType


def _softmax(call: Call) -> Value:
    """e = exp(x - max); e / sum(e)."""
    value, axis = call.tensor(0), call.integer(1)
    greatest = restored(reduce(call.emitter, value, [axis], MAXIMUM, "max"), [axis], len(value.shape))
    powers = elementwise(call, [value, greatest], _shifted_exponential, part="exp")
    total = restored(reduce(call.emitter, powers, [axis], FLOAT_SUM, "sum"), [axis], len(value.shape))
    return elementwise(call, [powers, total], lambda b, regs: b.emit(Op.FDIV, *regs))


def _log_softmax(call: Call) -> Value:
    """(x - max) - log(sum(exp(x - max)))."""
    value, axis = call.tensor(0), call.integer(1)
    greatest, logarithm = (restored(part, [axis], len(value.shape)) for part in log_of_sum(call, value, [axis]))

    def formula(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FSUB, b.emit(Op.FSUB, regs[0], regs[1]), regs[2])

    return elementwise(call, [value, greatest, logarithm], formula)


def log_of_sum(call: Call, value: Value, axes: list[int], finite: bool = False) -> tuple[Value, Value]:
    """The maximum along dimensions (0 where it is infinite, if so wished), and log(sum(exp(x - maximum)))."""
    emitter = call.emitter
    greatest: Value = reduce(emitter, value, axes, MAXIMUM, "max")
    if finite:
        infinity = MAXIMUM.neutral & 0x7FFFFFFF

        def bounded(b: Builder, regs: list[int]) -> int:
            return b.emit(Op.SELECT, b.emit(Op.FEQ, b.emit(Op.FABS, *regs), b.const(infinity)), b.const(0), *regs)

        greatest = emitter.map(greatest.shape, DType.F32, [greatest], bounded, "shift")
    wide = expand(restored(greatest, axes, len(value.shape)), value.shape)

    def add(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FADD, accumulator, _shifted_exponential(b, regs))

    # Where a lane has no term, exp(-infinity - 0) is +0.
    total = fold_terms(emitter, [value, wide], axes, FLOAT_SUM, add, [MAXIMUM.neutral, 0], "sum")
    logarithm = functions.log()
    return greatest, emitter.map(total.shape, DType.F32, [total], lambda b, regs: b.call(logarithm, *regs), "log")


def _shifted_exponential(b: Builder, regs: list[int]) -> int:
    return b.call(functions.exp(), b.emit(Op.FSUB, *regs))


def _log_softmax_backward(call: Call) -> Value:
    """g - exp(y) * sum(g)."""
    gradient, output, axis = call.tensor(0), call.tensor(1), call.integer(2)
    total = restored(reduce(call.emitter, gradient, [axis], FLOAT_SUM, "sum"), [axis], len(gradient.shape))
    exponential = functions.exp()

    def formula(b: Builder, regs: list[int]) -> int:
        part = b.emit(Op.FMUL, b.call(exponential, regs[1]), regs[2])
        return b.emit(Op.FSUB, regs[0], part)

    return elementwise(call, [gradient, output, total], formula)


def _softmax_backward(call: Call) -> Value:
    """y * (g - sum(g * y)); the sum is of fused products."""
    gradient, output, axis = call.tensor(0), call.tensor(1), call.integer(2)
    products = fold_terms(
        call.emitter,
        [gradient, output],
        [axis],
        FLOAT_SUM,
        lambda b, accumulator, regs: b.emit(Op.FFMA, *regs, accumulator),
        [0, 0],
        "sum",
    )
    total = restored(products, [axis], len(gradient.shape))
    return elementwise(
        call,
        [gradient, output, total],
        lambda b, regs: b.emit(Op.FMUL, regs[1], b.emit(Op.FSUB, regs[0], regs[2])),
    )


SOFTMAX: Mapping[str, Callable[[Call], Value]] = {
    "aten._log_softmax.default": _log_softmax,
    "aten._softmax.default": _softmax,
    "aten._log_softmax_backward_data.default": _log_softmax_backward,
    "aten._softmax_backward_data.default": _softmax_backward,
}
