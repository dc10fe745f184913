"""Activations: one map.

Names in the formulas: x the input, y the output, g the gradient of the output.
"""

from __future__ import annotations

import math

from pol.arithmetic.functions import erf, exp, sigmoid, tanh
from pol.arithmetic.registers import Float, fma, maximum, select
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType

_CUBIC = 0.044715
_SCALE = math.sqrt(2 / math.pi)


@lowers("aten.relu.default", defines="FMAX(x, 0), float32 only", is_exact=True)
def _relu(call: Call) -> Value:
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    return elementwise(call, [call.tensor(0)], lambda x: maximum(x, 0.0))


@lowers("aten.threshold_backward.default", defines="0 where x <= threshold, else the gradient")
def _threshold_backward(call: Call) -> Value:
    threshold = float(call.number(2))

    # Above the threshold y = x, with slope 1; elsewhere y is constant.
    def formula(g: Float, x: Float) -> Float:
        return select(x <= threshold, 0.0, g)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


@lowers("aten.tanh_backward.default", defines="g * (1 - y * y)")
def _tanh_backward(call: Call) -> Value:
    # tanh' = 1 - tanh^2.
    def formula(g: Float, y: Float) -> Float:
        return g * (1.0 - y * y)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


@lowers("aten.sigmoid_backward.default", defines="g * ((1 - y) * y)")
def _sigmoid_backward(call: Call) -> Value:
    # sigmoid' = e^-x / (1 + e^-x)^2 = (1 - sigmoid) * sigmoid.
    def formula(g: Float, y: Float) -> Float:
        return g * ((1.0 - y) * y)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


@lowers("aten.silu.default", defines="x * sigmoid(x)")
def _silu(call: Call) -> Value:
    return elementwise(call, [call.tensor(0)], lambda x: x * sigmoid(x))


@lowers("aten.silu_backward.default", defines="g * (s * FFMA(x, 1 - s, 1)), s = sigmoid(x)")
def _silu_backward(call: Call) -> Value:
    # (x * s)' = s + x * s', and s' = s * (1 - s):
    # together s * (1 + x * (1 - s)).
    def formula(g: Float, x: Float) -> Float:
        one, s = x.real(1.0), sigmoid(x)
        return g * (s * fma(x, one - s, one))

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


@lowers("aten.gelu.default", defines="x / 2 * (1 + T), T = erf(x * sqrt(1/2)), or tanh with approximate='tanh'")
def _gelu(call: Call) -> Value:
    bend = _tanh_bend if _is_tanh(call, 1) else _normal_bend

    def formula(x: Float) -> Float:
        t = bend(x)
        return (x * 0.5) * (t + 1.0)

    return elementwise(call, [call.tensor(0)], formula)


@lowers("aten.gelu_backward.default", defines="g * ((1 + T) / 2 + x * T' / 2), T as in gelu")
def _gelu_backward(call: Call) -> Value:
    # (x / 2 * (1 + T))' = (1 + T) / 2 + x * T' / 2;
    # the second term is the `rise`.
    bend_and_rise = _tanh_rise if _is_tanh(call, 2) else _normal_rise

    def formula(g: Float, x: Float) -> Float:
        t, rise = bend_and_rise(x)
        return g * ((t + 1.0) * 0.5 + rise)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _is_tanh(call: Call, position: int) -> bool:
    return call.argument(position, "approximate", "none") == "tanh"


def _normal_bend(x: Float) -> Float:
    """T = erf(x / sqrt(2))."""
    return erf(x * math.sqrt(0.5))


def _normal_rise(x: Float) -> tuple[Float, Float]:
    """T, and x * T' / 2: x times the normal density."""
    # erf' = 2 / sqrt(pi) * exp(-x^2), so T' / 2 = exp(-x^2 / 2) / sqrt(2 pi).
    density = exp((x * -0.5) * x) * (1 / math.sqrt(2 * math.pi))
    return _normal_bend(x), x * density


def _tanh_bend(x: Float) -> Float:
    """T = tanh(u) with u = sqrt(2 / pi) * (x + 0.044715 * x^3)."""
    square = x * x
    return tanh(fma(square * _CUBIC, x, x) * _SCALE)


def _tanh_rise(x: Float) -> tuple[Float, Float]:
    """T, and x * T' / 2."""
    # T' = (1 - T^2) * u' with u' = sqrt(2 / pi) * (1 + 3 * 0.044715 * x^2).
    one, square, t = x.real(1.0), x * x, _tanh_bend(x)
    slope = one - t * t
    inner = fma(square, 3 * _CUBIC, one) * _SCALE
    return t, ((x * 0.5) * slope) * inner


@lowers("aten.softshrink_backward.default", "aten.hardshrink_backward.default", defines="0 where |x| <= lambda, else g")
def _shrink_backward(call: Call) -> Value:
    limit = float(call.number(2))

    # Inside of the limits y = 0. Beyond them y is x, or x moved by lambda: the slope is 1.
    def formula(g: Float, x: Float) -> Float:
        return select(abs(x) <= limit, 0.0, g)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)
