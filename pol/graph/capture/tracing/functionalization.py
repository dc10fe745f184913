"""Replays a traced graph so that functionalization sees every effect, with pairs of reals for complex numbers.

torch's native_batch_norm writes its running statistics, but its schema does not say so: the graph would lose them.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter
from torch.fx import traceback as fx_traceback

from pol.graph.capture.replacements.complex_pairs import complex_call, constant_pairs, is_complex_call
from pol.graph.capture.tracing.provenance import SOURCE

_WHOLE = [True, True, True]


class FunctionalReplay(Interpreter):
    """Runs a graph; batch normalization by operations that write nothing, complex numbers as pairs of reals."""

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self._pairs = constant_pairs(graph)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor outside of the step."""
        return self._pairs[target] if target in self._pairs else super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operation, or its replacement."""
        if target is not operator.getitem and is_complex_call(target, args, kwargs):
            mark = fx_traceback.get_current_meta().get("custom") or {}
            return complex_call(target, args, kwargs, mark.get(SOURCE, "the step"))
        if target is torch.ops.aten.view.default:
            return _viewed(*args)
        if target is torch.ops.aten.native_batch_norm.default:
            return _batch_norm(*args)
        if target is torch.ops.aten.native_batch_norm_backward.default and not args[7]:
            return _fixed_batch_norm_backward(*args)
        # All gradients are computed, with a weight of ones where there is none; unused ones are dropped later.
        if target is torch.ops.aten.native_batch_norm_backward.default:
            return target(*args[:-1], _WHOLE)
        if target is torch.ops.aten.native_layer_norm_backward.default:
            gradient, value, shape, mean, scale, weight, bias, _ = args
            weight = value.new_ones(shape) if weight is None else weight
            return target(gradient, value, shape, mean, scale, weight, weight if bias is None else bias, _WHOLE)
        if target is torch.ops.aten.native_group_norm_backward.default:
            gradient, value, mean, scale, weight, samples, channels, *rest, _ = args
            weight = value.new_ones(channels) if weight is None else weight
            return target(gradient, value, mean, scale, weight, samples, channels, *rest, _WHOLE)
        return super().call_function(target, args, kwargs)


def _viewed(value: Tensor, shape: Any) -> Tensor:
    """A view; a copy where the pairs of complex numbers lie in another order than torch's complex numbers."""
    try:
        return torch.ops.aten.view.default(value, shape)  # type: ignore[no-any-return]  # a tensor
    except (RuntimeError, ValueError):
        return value.reshape(shape)


def _batch_norm(
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    if mean is None or variance is None:
        by_batch = torch.ops.aten._native_batch_norm_legit.no_stats
        return tuple(by_batch(value, weight, bias, training, momentum, epsilon))
    if training:
        functional = torch.ops.aten._native_batch_norm_legit_functional.default
        *results, next_mean, next_variance = functional(
            value, weight, bias, mean, variance, training, momentum, epsilon
        )
        mean.copy_(next_mean)
        variance.copy_(next_variance)
        return tuple(results)
    scale = torch.rsqrt(variance + epsilon)
    result = (value - _channels(mean, value)) * _channels(scale, value)
    result = result if weight is None else result * _channels(weight, value)
    result = result if bias is None else result + _channels(bias, value)
    # The statistics of the batch are unused here.
    return result.to(value.dtype), mean.new_zeros(1), mean.new_zeros(1)


def _fixed_batch_norm_backward(
    gradient: Tensor,
    value: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    save_mean: Tensor,
    save_scale: Tensor,
    training: bool,
    epsilon: float,
    mask: list[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients where the running statistics, and not those of the batch, are used."""
    scale = torch.rsqrt(variance + epsilon)
    axes = [0, *range(2, value.dim())]
    slope = scale if weight is None else scale * weight
    by_value = (gradient * _channels(slope, value)).to(value.dtype) if mask[0] else None
    normal = (value - _channels(mean, value)) * _channels(scale, value)
    by_weight = (gradient * normal).sum(axes) if mask[1] else None
    by_bias = gradient.sum(axes) if mask[2] else None
    if weight is not None:
        by_weight = by_weight if by_weight is None else by_weight.to(weight.dtype)
        by_bias = by_bias if by_bias is None else by_bias.to(weight.dtype)
    return by_value, by_weight, by_bias


def _channels(part: Tensor, value: Tensor) -> Tensor:
    """A number per channel, over the second dimension of `value`."""
    return part.reshape(-1, *[1] * (value.dim() - 2))
