"""Replacements of ATen operations that have no rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table, get_decompositions
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.replacements import EXACT, REPLACEMENTS
from pol.graph.capture.tracing.aten_recorder import IDENTITIES
from pol.graph.lowering import RULES
from pol.graph.lowering.advice import DECOMPOSED


def decompositions(only_exact: bool = False) -> Mapping[Any, Callable[..., Any]]:
    """torch's own of DECOMPOSED and of what has no rule, our replacements; ours of memory and of empty tensors.

    Most replacements agree with torch up to rounding, not bit for bit; `only_exact` leaves those out. They are applied
    here and nowhere else, after writes have become functional: a replacement may use other replaced operations. Complex
    numbers and memory layouts are resolved before, in FunctionalReplay, since functionalization must see the result.
    """
    aten = torch.ops.aten
    chosen = {key: function for key, function in REPLACEMENTS.items() if key in EXACT or not only_exact}
    return {
        **({} if only_exact else _of_torch()),
        **get_decompositions([getattr(aten, name) for name in DECOMPOSED]),
        torch.ops.prims.convert_element_type.default: lambda tensor, dtype: tensor.to(dtype),
        **chosen,
        aten.empty_like.default: _zeros_like,
        aten.empty.memory_format: _zeros,
        aten.new_empty.default: lambda tensor, size, **options: _zeros(size, **{"dtype": tensor.dtype, **options}),
        aten.new_empty_strided.default: lambda tensor, size, stride, **options: _zeros(
            size, **{"dtype": tensor.dtype, **options}
        ),
        aten.empty_strided.default: lambda size, stride, **options: _zeros(size, **options),
        aten.cat.default: _cat,
        aten.split_with_sizes.default: _split,
        aten.slice_backward.default: _slice_backward,
        aten.slice_scatter.default: _slice_scatter,
        aten.constant_pad_nd.default: _pad,
        aten.sum.dim_IntList: _sum,
        aten.cumsum.default: _running_sum,
        aten.as_strided_scatter.default: _as_strided_scatter,
        aten.copy.default: _copied,
        aten.view.default: _viewed,
        aten.zero.default: _zeros_like,
    }


def _of_torch() -> Mapping[Any, Callable[..., Any]]:
    """torch's references (torch._refs) are left out: they lead to operations of their own, which have no rules."""
    known = {*RULES, *IDENTITIES}
    return {
        operation: function
        for operation, function in decomposition_table.items()
        if isinstance(operation, OpOverload)
        and function.__module__.startswith("torch._decomp")
        and torch.Tag.nondeterministic_seeded not in operation.tags
        and str(operation) not in known
    }


def _zeros_like(tensor: Tensor, **options: Any) -> Tensor:
    return _zeros(tensor.shape, **{"dtype": tensor.dtype, **options})


def _zeros(size: Sequence[int], **options: Any) -> Tensor:
    """Zeros in place of uninitialized memory: unused ones are dropped, and used ones are defined."""
    chosen = options.get("dtype")
    return torch.full(size, 0, dtype=torch.get_default_dtype() if chosen is None else chosen)


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The result of `target.copy_(source)` in a functional graph."""
    return source.to(target.dtype).expand(target.shape)


def _viewed(value: Tensor, shape: Sequence[int]) -> Any:
    """A copy where functionalization has given the tensor a layout that has no such view, as a written one may have."""
    if not all(type(size) is int for size in (*value.shape, *value.stride(), *shape)):
        return NotImplemented  # a shape that depends on data, which is refused later
    with _disable_current_modes():
        like = torch.empty_strided(value.shape, value.stride(), device="meta")
        try:
            like.view(shape)
        except RuntimeError:
            is_view = False
        else:
            is_view = True
    return NotImplemented if is_view else value.reshape(shape)


def _cat(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Concatenation without empty tensors, such as the initial caches of text generation."""
    some = [tensor for tensor in tensors if tensor.numel()]
    if len(some) == len(tensors) or not some:
        return NotImplemented
    return torch.cat(some, dim)


def _split(value: Tensor, sizes: Sequence[int], dim: int = 0) -> Any:
    """Parts of which some are empty."""
    if all(sizes):
        return NotImplemented
    starts = accumulate(sizes, initial=0)
    return [value.narrow(dim, start, size) for start, size in zip(starts, sizes, strict=False)]


def _slice_backward(gradient: Tensor, shape: Sequence[int], *_: int) -> Any:
    """The gradient of an empty part."""
    return NotImplemented if gradient.numel() else _zeros(shape, dtype=gradient.dtype)


def _slice_scatter(value: Tensor, part: Tensor, *_: Any, **__: Any) -> Any:
    """Nothing is written."""
    return NotImplemented if part.numel() else value.clone()


def _pad(value: Tensor, widths: Sequence[int], number: float = 0) -> Any:
    """Only borders."""
    if value.numel():
        return NotImplemented
    shape = list(value.shape)
    for place in range(len(widths) // 2):
        shape[-1 - place] += widths[2 * place] + widths[2 * place + 1]
    return torch.full(shape, number, dtype=value.dtype)


def _sum(value: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """A sum of nothing is zero."""
    if value.numel():
        return NotImplemented
    dims = {axis % value.dim() for axis in (range(value.dim()) if dim is None else dim)}
    shape = [1 if axis in dims else size for axis, size in enumerate(value.shape) if keepdim or axis not in dims]
    return _zeros(shape, dtype=dtype or (value.dtype if value.is_floating_point() else torch.int64))


def _running_sum(value: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Numbers become integers before they are added."""
    if dtype is None or dtype.is_floating_point or not value.is_floating_point():
        return NotImplemented
    return torch.cumsum(value.to(dtype), dim, dtype=dtype)


def _as_strided_scatter(
    value: Tensor, source: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Tensor:
    """A contiguous tensor with the source at strides in its memory."""
    start, flat = offset or 0, value.reshape(-1)
    order = sorted((axis for axis, size in enumerate(shape) if size > 1), key=lambda axis: -strides[axis])
    order += [axis for axis, size in enumerate(shape) if size == 1]
    count = 1
    for axis in reversed(order):
        if shape[axis] > 1 and strides[axis] != count:
            break
        count *= shape[axis]
    else:
        words = source.permute(order).reshape(-1)
        return torch.slice_scatter(flat, words, 0, start, start + count).reshape(value.shape)
    place = torch.full(tuple(shape), start)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        place = place + (torch.arange(size) * stride).reshape(-1, *[1] * (len(shape) - axis - 1))
    return flat.scatter(0, place.reshape(-1), source.reshape(-1)).reshape(value.shape)
