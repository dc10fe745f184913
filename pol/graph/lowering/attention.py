"""Softmax of attention scores, where a row may be masked completely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.folds import FLOAT_SUM, MAXIMUM, reduce
from pol.graph.lowering.values import Value, axis_index, unsqueeze
from pol.graph.tensor_type import DType

GREATEST = replace(MAXIMUM, neutral=0xFF7FFFFF)
"""The greatest number of a row; the lowest finite one where all are minus infinity, so that a difference exists."""


def _safe_softmax(call: Call) -> Value:
    """exp(x - max) / sum(exp(x - max)); a row of minus infinities gives zeros."""
    value, axis = call.tensor(0), call.integer(1)
    place = axis_index(axis, len(value.shape))
    greatest = unsqueeze(reduce(call.emitter, value, [place], GREATEST, "max"), place)
    exponential = functions.exp()

    def power(b: Builder, regs: list[int]) -> int:
        return b.call(exponential, b.emit(Op.FSUB, *regs))

    powers = elementwise(call, [value, greatest], power, part="exp")
    total = reduce(call.emitter, powers, [place], FLOAT_SUM, "sum")
    # The sum is at least 1, the greatest number's own part, or else 0: then every part is zero.
    divisor = call.emitter.map(
        total.shape, DType.F32, [total], lambda b, regs: b.emit(Op.FMAX, regs[0], b.f32(1.0)), "divisor"
    )
    return elementwise(call, [powers, unsqueeze(divisor, place)], lambda b, regs: b.emit(Op.FDIV, *regs))


ATTENTION: Mapping[str, Callable[[Call], Value]] = {"aten._safe_softmax.default": _safe_softmax}
