"""Reading and writing at places that numbers of the code determine: strides, filled rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.replacements.table import replaces


@replaces("as_strided.default")
def _as_strided(x: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Any:
    """Of a tensor that lies in memory in its own order: elements by their places."""
    start = 0 if storage_offset is None else storage_offset - int(x.storage_offset())
    last = start + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if not x.is_contiguous() or start < 0 or last >= x.numel():
        return NotImplemented
    index = torch.full([1] * len(size), start, dtype=torch.int64)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = count
        index = index + (torch.arange(count) * step).reshape(shape)
    return torch.index_select(x.reshape(-1), 0, index.reshape(-1)).reshape(size)


@replaces("as_strided_scatter.default")
def _as_strided_scatter(
    x: Tensor, source: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None
) -> Any:
    """As `as_strided`, for places that are all different: each element is its own or one of the source."""
    start = 0 if storage_offset is None else storage_offset - int(x.storage_offset())
    if not x.is_contiguous() or start < 0:
        return NotImplemented
    with _disable_current_modes():
        places = torch.arange(start + x.numel()).as_strided(size, stride, start).reshape(-1)
        origin = torch.full((x.numel(),), -1, dtype=torch.int64)
        origin[places] = torch.arange(len(places))
        if bool((origin[places] != torch.arange(len(places))).any()):
            return NotImplemented
    chosen = torch.index_select(source.reshape(-1), 0, torch.clamp(origin, min=0))
    return torch.where(origin >= 0, chosen, x.reshape(-1)).reshape(x.shape)


@replaces("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(x: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
    axis = dim % max(x.dim(), 1)
    is_filled = (torch.arange(x.shape[axis]).unsqueeze(1) == index.reshape(-1)).any(1)
    return torch.where(is_filled.reshape(-1, *[1] * (x.dim() - axis - 1)), value, x)


@replaces("slice_scatter.default")
def _slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    if step == 1:
        return NotImplemented
    axis = dim % x.dim()
    size = x.shape[axis]
    with _disable_current_modes():
        places = torch.arange(size)[start:end:step]
        origin = torch.full((size,), -1, dtype=torch.int64)
        origin[places] = torch.arange(len(places))
    shape = [-1, *[1] * (x.dim() - axis - 1)]
    chosen = torch.index_select(source, axis, torch.clamp(origin, min=0))
    return torch.where((origin >= 0).reshape(shape), chosen, x)


@replaces("take.default")
def _take(x: Tensor, index: Tensor) -> Tensor:
    return x.reshape(-1)[index]


@replaces("put.default")
def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = torch.index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate)
    return flat.reshape(x.shape)
