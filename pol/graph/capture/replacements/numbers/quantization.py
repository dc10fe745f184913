"""Quantization that is simulated in floats, with scales that are fixed, observed or learned."""

from __future__ import annotations

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


def _along(numbers: Tensor, value: Tensor, axis: int | None) -> Tensor:
    """A number per channel, or a single one, over a tensor."""
    if axis is None:
        return numbers.reshape(()) if numbers.numel() == 1 else numbers
    shape = [1] * value.dim()
    shape[axis] = -1
    return numbers.reshape(shape)


def _quantized(
    value: Tensor, scale: Tensor | float, zero: Tensor | float, low: int, high: int, axis: int | None = None
) -> tuple[Tensor, Tensor]:
    """Nearest multiples of the scale within the range, and which elements were in it."""
    if isinstance(scale, Tensor):
        scale = _along(scale.to(value.dtype), value, axis)
    if isinstance(zero, Tensor):
        zero = _along(zero.to(value.dtype), value, axis)
    steps = (value * (1.0 / scale)).round() + zero
    return (steps.clamp(low, high) - zero) * scale, (steps >= low) & (steps <= high)


@replaces("fake_quantize_per_tensor_affine_cachemask.default")
def _per_tensor(value: Tensor, scale: Tensor | float, zero: Tensor | int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """One scale."""
    return _quantized(value, scale, zero, low, high)


@replaces("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def _per_tensor_if(
    value: Tensor, scale: Tensor, zero: Tensor, enabled: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """One scale; `enabled` is 0 where nothing is quantized."""
    result, inside = _quantized(value, scale, zero, low, high)
    is_on = enabled.reshape(()) != 0
    return torch.where(is_on, result, value), inside | ~is_on


@replaces("fake_quantize_per_channel_affine_cachemask.default")
def _per_channel(value: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """One scale per channel."""
    return _quantized(value, scale, zero, low, high, axis)


@replaces("_fake_quantize_learnable_per_tensor_affine.default")
def _learned(
    value: Tensor, scale: Tensor, zero: Tensor, low: int, high: int, factor: float = 1.0, axis: int | None = None
) -> Tensor:
    """With a scale and a zero point that are parameters; the zero point is rounded into the range."""
    return _quantized(value, scale, _whole(zero, low, high), low, high, axis)[0]


@replaces("_fake_quantize_learnable_per_channel_affine.default")
def _learned_per_channel(
    value: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int, factor: float = 1.0
) -> Tensor:
    """As `_learned`, one scale per channel."""
    return _learned(value, scale, zero, low, high, factor, axis)


@replaces("_fake_quantize_learnable_per_tensor_affine_backward.default")
def _learned_backward(
    gradient: Tensor,
    value: Tensor,
    scale: Tensor,
    zero: Tensor,
    low: int,
    high: int,
    factor: float = 1.0,
    axis: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of value, scale and zero point (learned step size quantization)."""
    whole = _along(_whole(zero, low, high), value, axis)
    step = _along(scale, value, axis)
    steps = (value * (1.0 / step)).round() + whole
    below, above = steps < low, steps > high
    inside = ~(below | above)
    # Inside: d/ds of round(x / s) * s counts as round(x / s) - x / s. Outside the result is (bound - zero) * s.
    bound = torch.where(below, low - whole, high - whole)
    by_scale = torch.where(inside, ((steps - whole) * step - value) / step, bound)
    by_zero = torch.where(inside, 0.0, -step)
    axes = list(range(value.dim())) if axis is None else [place for place in range(value.dim()) if place != axis]
    sums = [((gradient * slope).sum(axes) if axes else gradient * slope) * factor for slope in (by_scale, by_zero)]
    return torch.where(inside, gradient, 0.0), sums[0].reshape(scale.shape), sums[1].reshape(zero.shape)


@replaces("_fake_quantize_learnable_per_channel_affine_backward.default")
def _learned_per_channel_backward(
    gradient: Tensor, value: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int, factor: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """As `_learned_backward`, one scale per channel."""
    return _learned_backward(gradient, value, scale, zero, low, high, factor, axis)


def _whole(zero: Tensor, low: int, high: int) -> Tensor:
    # As torch: rounded half up, then bounded.
    return (zero.detach() + 0.5).clamp(low, high).floor()
