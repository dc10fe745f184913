"""Softmax of attention scores, where a row may be masked completely."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.folds import FLOAT_SUM, MAXIMUM, reduce
from pol.graph.lowering.values import Value, axis_index, unsqueeze

MINUS_INFINITY = 0xFF800000


def _safe_softmax(call: Call) -> Value:
    """exp(x - max) / sum(exp(x - max)); a row of minus infinities gives zeros."""
    value, axis = call.tensor(0), call.integer(1)
    place = axis_index(axis, len(value.shape))
    greatest = unsqueeze(reduce(call.emitter, value, [place], MAXIMUM, "max"), place)

    def power(b: Builder, regs: list[int]) -> int:
        lowest = b.emit(Op.FEQ, regs[1], b.const(MINUS_INFINITY))
        return b.call(functions.exp(), b.emit(Op.FSUB, regs[0], b.emit(Op.SELECT, lowest, b.f32(0.0), regs[1])))

    powers = elementwise(call, [value, greatest], power, part="exp")
    total = unsqueeze(reduce(call.emitter, powers, [place], FLOAT_SUM, "sum"), place)

    def share(b: Builder, regs: list[int]) -> int:
        empty = b.emit(Op.FEQ, regs[1], b.f32(0.0))
        return b.emit(Op.FDIV, regs[0], b.emit(Op.SELECT, empty, b.f32(1.0), regs[1]))

    return elementwise(call, [powers, total], share)


ATTENTION: Mapping[str, Callable[[Call], Value]] = {"aten._safe_softmax.default": _safe_softmax}
