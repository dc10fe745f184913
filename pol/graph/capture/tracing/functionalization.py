"""Replays a traced graph so that functionalization sees every effect, with pairs of reals for complex numbers.

torch's native_batch_norm writes its running statistics, but its schema does not say so: the graph would lose them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx import traceback as fx_traceback

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.complex.pairs import complex_call, constant_pairs, is_complex_call
from pol.graph.capture.tracing.provenance import SOURCE

_WHOLE = [True, True, True]


_VIEWS: Mapping[Any, Any] = {
    torch.ops.aten.squeeze_.dim: torch.ops.aten.squeeze.dim,
    torch.ops.aten.squeeze_.default: torch.ops.aten.squeeze.default,
    torch.ops.aten.unsqueeze_.default: torch.ops.aten.unsqueeze.default,
    torch.ops.aten.transpose_.default: torch.ops.aten.transpose.int,
    torch.ops.aten.t_.default: torch.ops.aten.t.default,
}
"""Changes of a tensor's own shape; a trace reads the result wherever the tensor is read afterwards."""


class FunctionalReplay(Interpreter):
    """Runs a graph; batch normalization by operations that write nothing, complex numbers as pairs of reals."""

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self.extra_traceback = False  # it would be added to the messages of refusals
        self._pairs = constant_pairs(graph)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor outside of the step, one that functionalization follows: what is made of it may be written to."""
        value = self._pairs[target] if target in self._pairs else super().get_attr(target, args, kwargs)
        return torch.ops.aten.lift_fresh.default(value) if isinstance(value, Tensor) else value

    def run_node(self, n: Node) -> Any:
        """The result of a node; `as_strided` is one of its operand's elements, which may lie in another order."""
        if n.target in {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_.default}:
            with self._set_current_node(n):
                (value, *rest), _ = self.fetch_args_kwargs_from_env(n)
                return _restrided(value, n.all_input_nodes[0].meta["val"], *rest)
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operation, or one that functionalization sees through."""
        if target is not operator.getitem and is_complex_call(target, args, kwargs):
            mark = fx_traceback.get_current_meta().get("custom") or {}
            return complex_call(target, args, kwargs, mark.get(SOURCE, "the step"))
        target = _VIEWS.get(target, target)
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


def _restrided(
    value: Tensor, known: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Tensor:
    """The words at strides in the memory of a tensor whose layout is that of `known`.

    Raises UnsupportedError where they are not all words of the tensor itself.
    """
    kept = zip(known.shape, known.stride(), strides, strict=False)
    if tuple(shape) == tuple(known.shape) and all(size == 1 or before == after for size, before, after in kept):
        return value
    order = sorted(range(known.dim()), key=lambda axis: (known.stride()[axis], known.shape[axis]), reverse=True)
    flat = value.permute(order).reshape(-1)
    start = 0 if offset is None else offset - known.storage_offset()
    end = start + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    dense, count = True, 1
    for axis in reversed(order):
        dense = dense and (known.size(axis) == 1 or known.stride(axis) == count)
        count *= known.size(axis)
    if not dense or start < 0 or end >= count:
        line = (fx_traceback.get_current_meta().get("custom") or {}).get(SOURCE, "the step")
        raise UnsupportedError(
            f"{line} -- as_strided reads memory that is not its tensor's own: apply it to a contiguous tensor, or use "
            "slices, unfold and permute"
        )
    # Of a contiguous tensor it is a view: later code may write through it.
    flat = value if known.is_contiguous() and value.is_contiguous() else flat.clone()
    seen: Tensor = torch.ops.aten.as_strided.default(flat, shape, strides, start)
    return seen


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
