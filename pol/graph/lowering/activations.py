"""Activations of neural networks and their slopes: one map each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType

GELU_CUBIC = 0.044715
GELU_SCALE = math.sqrt(2 / math.pi)


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


def _silu(call: Call) -> Value:
    """x * sigmoid(x)."""
    return elementwise(
        call, [call.tensor(0)], lambda b, regs: b.emit(Op.FMUL, regs[0], b.call(functions.sigmoid(), regs[0]))
    )


def _silu_backward(call: Call) -> Value:
    """g * (s * (1 + x * (1 - s))), s the sigmoid."""

    def formula(b: Builder, regs: list[int]) -> int:
        gradient, x = regs
        one, s = b.f32(1.0), b.call(functions.sigmoid(), x)
        slope = b.emit(Op.FMUL, s, b.emit(Op.FFMA, x, b.emit(Op.FSUB, one, s), one))
        return b.emit(Op.FMUL, gradient, slope)

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _gelu_parts(b: Builder, x: int) -> tuple[int, int]:
    """x^2 and tanh(sqrt(2 / pi) * (x + 0.044715 x^3))."""
    square = b.emit(Op.FMUL, x, x)
    inner = b.emit(Op.FFMA, b.emit(Op.FMUL, square, b.f32(GELU_CUBIC)), x, x)
    return square, b.call(functions.tanh(), b.emit(Op.FMUL, inner, b.f32(GELU_SCALE)))


def _is_tanh(call: Call, position: int) -> bool:
    return call.argument(position, "approximate", "none") == "tanh"


def _error_function(b: Builder, x: int) -> int:
    return b.call(functions.erf(), b.emit(Op.FMUL, x, b.f32(math.sqrt(0.5))))


def _gelu(call: Call) -> Value:
    """x / 2 * (1 + T), T = erf(x / sqrt(2)) or its approximation by the hyperbolic tangent."""
    is_tanh = _is_tanh(call, 1)

    def formula(b: Builder, regs: list[int]) -> int:
        bend = _gelu_parts(b, regs[0])[1] if is_tanh else _error_function(b, regs[0])
        return b.emit(Op.FMUL, b.emit(Op.FMUL, regs[0], b.f32(0.5)), b.emit(Op.FADD, bend, b.f32(1.0)))

    return elementwise(call, [call.tensor(0)], formula)


def _gelu_backward(call: Call) -> Value:
    """g * ((1 + T) / 2 + x * T' / 2), T as in the forward direction."""
    steep = _tanh_steepness if _is_tanh(call, 2) else _normal_steepness

    def formula(b: Builder, regs: list[int]) -> int:
        gradient, x = regs
        bend, rise = steep(b, x)
        flat = b.emit(Op.FMUL, b.emit(Op.FADD, bend, b.f32(1.0)), b.f32(0.5))
        return b.emit(Op.FMUL, gradient, b.emit(Op.FADD, flat, rise))

    return elementwise(call, [call.tensor(0), call.tensor(1)], formula)


def _tanh_steepness(b: Builder, x: int) -> tuple[int, int]:
    """T and x / 2 * (1 - T^2) * sqrt(2 / pi) * (1 + 3 * 0.044715 x^2), T the hyperbolic tangent."""
    one = b.f32(1.0)
    square, bend = _gelu_parts(b, x)
    slope = b.emit(Op.FSUB, one, b.emit(Op.FMUL, bend, bend))
    inner = b.emit(Op.FMUL, b.emit(Op.FFMA, square, b.f32(3 * GELU_CUBIC), one), b.f32(GELU_SCALE))
    return bend, b.emit(Op.FMUL, b.emit(Op.FMUL, b.emit(Op.FMUL, x, b.f32(0.5)), slope), inner)


def _normal_steepness(b: Builder, x: int) -> tuple[int, int]:
    """erf(x / sqrt(2)) and x times the density exp(-x^2 / 2) / sqrt(2 pi)."""
    power = b.call(functions.exp(), b.emit(Op.FMUL, b.emit(Op.FMUL, x, b.f32(-0.5)), x))
    density = b.emit(Op.FMUL, power, b.f32(1 / math.sqrt(2 * math.pi)))
    return _error_function(b, x), b.emit(Op.FMUL, x, density)


def _shrink_backward(call: Call) -> Value:
    """The gradient where |x| > lambda, else 0; the slope of both soft and hard shrinking."""

    def formula(b: Builder, regs: list[int]) -> int:
        inside = b.emit(Op.FLE, b.emit(Op.FABS, regs[1]), regs[2])
        return b.emit(Op.SELECT, inside, b.f32(0.0), regs[0])

    return elementwise(call, [call.tensor(0), call.tensor(1), float(call.number(2))], formula)


ACTIVATIONS: Mapping[str, Callable[[Call], Value]] = {
    "aten.relu.default": _relu,
    "aten.threshold_backward.default": _threshold_backward,
    "aten.tanh_backward.default": _tanh_backward,
    "aten.sigmoid_backward.default": _sigmoid_backward,
    "aten.silu.default": _silu,
    "aten.silu_backward.default": _silu_backward,
    "aten.gelu.default": _gelu,
    "aten.gelu_backward.default": _gelu_backward,
    "aten.softshrink_backward.default": _shrink_backward,
    "aten.hardshrink_backward.default": _shrink_backward,
}
