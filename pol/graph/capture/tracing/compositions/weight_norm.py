"""Weights as a length times a direction (`weight_norm`)."""

from __future__ import annotations

from torch import Tensor

from pol.graph.capture.replacements.pullback import pulled_back


def weight_norm(direction: Tensor, length: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """The weight, and the norms of the direction without the given dimension."""
    axes = [axis for axis in range(direction.dim()) if axis != dim]
    norms = (direction * direction).sum(axes, keepdim=True).sqrt()
    return direction * (length / norms), norms


def weight_norm_backward(
    gradient: Tensor, direction: Tensor, length: Tensor, _norms: Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Gradients of direction and length."""
    return pulled_back(lambda v, g: weight_norm(v, g, dim)[0], gradient, direction, length)
