"""Softmax: as few readings of the big tensor as the formulas allow.

Names in the formulas: x the input, y the output, g the gradient of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pol.arithmetic.functions import exp, log
from pol.arithmetic.registers import Float, fma, maximum, select
from pol.graph.lowering.call import Call
from pol.graph.lowering.folds import FLOAT_SUM, MAXIMUM, fold_terms, reduce, restored
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import Value, axis_index, expand, unsqueeze
from pol.graph.tensor_type import DType

_LOWEST = replace(MAXIMUM, neutral=0xFF7FFFFF)
"""The greatest number of a row; the lowest finite one where all are minus infinity, so that a difference exists."""
_INFINITY = float("inf")


def _shifted_exponential(x: Float, shift: Float) -> Float:
    return exp(x - shift)


@lowers("aten._log_softmax.default", defines="s = x - max; s - log(sum(exp(s)))")
def _log_softmax(call: Call) -> Value:
    value, axis = call.tensor(0), call.integer(1)
    greatest, logarithm = (restored(part, [axis], len(value.shape)) for part in log_of_sum(call, value, [axis]))

    def formula(x: Float, greatest: Float, logarithm: Float) -> Float:
        return (x - greatest) - logarithm

    return elementwise(call, [value, greatest, logarithm], formula)


@lowers("aten._softmax.default", defines="e = exp(x - max); e / sum(e)")
def _softmax(call: Call) -> Value:
    value, axis = call.tensor(0), call.integer(1)
    greatest = restored(reduce(call.emitter, value, [axis], MAXIMUM, "max"), [axis], len(value.shape))
    powers = elementwise(call, [value, greatest], _shifted_exponential, part="exp")
    total = restored(reduce(call.emitter, powers, [axis], FLOAT_SUM, "sum"), [axis], len(value.shape))
    return elementwise(call, [powers, total], lambda e, total: e / total)


def log_of_sum(call: Call, value: Value, axes: Sequence[int], finite: bool = False) -> tuple[Value, Value]:
    """The maximum along dimensions (0 where it is infinite, if so wished), and log(sum(exp(x - maximum)))."""
    emitter = call.emitter
    greatest: Value = reduce(emitter, value, axes, MAXIMUM, "max")
    if finite:

        def shift(greatest: Float) -> Float:
            return select(abs(greatest) == _INFINITY, 0.0, greatest)

        greatest = emitter.map(greatest.shape, DType.F32, [greatest], shift, "shift")
    wide = expand(restored(greatest, axes, len(value.shape)), value.shape)

    def add(total: Float, x: Float, shift: Float) -> Float:
        return total + _shifted_exponential(x, shift)

    # Where a lane has no term, exp(-infinity - 0) is +0.
    total = fold_terms(emitter, [value, wide], axes, FLOAT_SUM, add, [MAXIMUM.neutral, 0], "sum")
    return greatest, emitter.map(total.shape, DType.F32, [total], log, "log")


@lowers("aten._log_softmax_backward_data.default", defines="g - exp(y) * sum(g)")
def _log_softmax_backward(call: Call) -> Value:
    # dy_j / dx_i = [i = j] - softmax(x)_i, and softmax(x) = exp(y):
    # sum over j of g_j * dy_j / dx_i is g_i - exp(y_i) * sum(g).
    gradient, axis = call.tensor(0), call.integer(2)
    output = call.shaped(1, gradient.shape)
    total = restored(reduce(call.emitter, gradient, [axis], FLOAT_SUM, "sum"), [axis], len(gradient.shape))

    def formula(g: Float, y: Float, sum_g: Float) -> Float:
        return g - exp(y) * sum_g

    return elementwise(call, [gradient, output, total], formula)


@lowers("aten._softmax_backward_data.default", defines="y * (g - sum(FFMA(g, y, ...)))")
def _softmax_backward(call: Call) -> Value:
    # dy_j / dx_i = y_j * ([i = j] - y_i):
    # sum over j of g_j * dy_j / dx_i is y_i * (g_i - sum(g * y)).
    gradient, axis = call.tensor(0), call.integer(2)
    output = call.shaped(1, gradient.shape)

    def add(total: Float, g: Float, y: Float) -> Float:
        return fma(g, y, total)

    products = fold_terms(call.emitter, [gradient, output], [axis], FLOAT_SUM, add, [0, 0], "sum")

    def formula(g: Float, y: Float, sum_gy: Float) -> Float:
        return y * (g - sum_gy)

    return elementwise(call, [gradient, output, restored(products, [axis], len(gradient.shape))], formula)


@lowers(
    "aten._safe_softmax.default", defines="s = x - max; exp(s) / FMAX(sum(exp(s)), 1), max not below the lowest number"
)
def _safe_softmax(call: Call) -> Value:
    """Softmax of attention scores, where a row may be masked completely."""
    value, axis = call.tensor(0), call.integer(1)
    place = axis_index(axis, len(value.shape))
    greatest = unsqueeze(reduce(call.emitter, value, [place], _LOWEST, "max"), place)
    powers = elementwise(call, [value, greatest], _shifted_exponential, part="exp")
    total = reduce(call.emitter, powers, [place], FLOAT_SUM, "sum")
    # The sum is at least 1, the greatest number's own part, or else 0: then every part is zero.
    divisor = call.emitter.map(total.shape, DType.F32, [total], lambda total: maximum(total, 1.0), "divisor")
    return elementwise(call, [powers, unsqueeze(divisor, place)], lambda e, divisor: e / divisor)
