"""Order statistics and places by sorting and counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


def _kept(tensor: Tensor, dim: int, keepdim: bool) -> Tensor:
    return tensor if keepdim or not tensor.dim() else tensor.squeeze(dim)


def _at_rank(x: Tensor, rank: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The number of a rank along a dimension, and its place; `rank` has size 1 there."""
    values, places = torch.sort(x, dim=dim, stable=True)
    found = torch.gather(values, dim, rank), torch.gather(places, dim, rank)
    return _kept(found[0], dim, keepdim), _kept(found[1], dim, keepdim)


def _numbers(x: Tensor, dim: int) -> Tensor:
    """How many numbers that aren't NaN stand along a dimension."""
    return (x == x).sum(dim, keepdim=True)  # noqa: PLR0124  # only a NaN is unequal to itself


def _median(x: Tensor, dim: int, keepdim: bool, skips_nan: bool) -> tuple[Tensor, Tensor]:
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    size = x.shape[dim]
    rank = torch.full_like(x.narrow(dim, 0, 1), (size - 1) // 2, dtype=torch.int64)
    if x.is_floating_point():
        count = _numbers(x, dim)
        # NaN is sorted to the end: the first one is the median if it counts.
        if skips_nan:
            rank = torch.floor_divide(torch.clamp(count - 1, min=0), 2)
        else:
            rank = torch.where(count == size, rank, count)
    return _at_rank(x, rank, dim, keepdim)


@replaces("median.dim")
def _median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _median(x, dim, keepdim, skips_nan=False)


@replaces("nanmedian.dim")
def _nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _median(x, dim, keepdim, skips_nan=True)


@replaces("median.default")
def _median_of_all(x: Tensor) -> Tensor:
    return _median(x.reshape(-1), 0, keepdim=False, skips_nan=False)[0]


@replaces("nanmedian.default")
def _nanmedian_of_all(x: Tensor) -> Tensor:
    return _median(x.reshape(-1), 0, keepdim=False, skips_nan=True)[0]


@replaces("kthvalue.default")
def _kth_value(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    return _at_rank(x, torch.full_like(x.narrow(dim, 0, 1), k - 1, dtype=torch.int64), dim, keepdim)


@replaces("aminmax.default")
def _extremes(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if dim is None and keepdim:
        dims = list(range(x.dim()))
        return torch.amin(x, dims, True), torch.amax(x, dims, True)
    axes = [] if dim is None else [dim]
    return torch.amin(x, axes, keepdim), torch.amax(x, axes, keepdim)


@replaces("searchsorted.Tensor")
def _searchsorted(
    boundaries: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    if sorter is None:
        return NotImplemented
    ordered = torch.gather(boundaries, -1, sorter)
    return torch.searchsorted(ordered, x, out_int32=out_int32, right=right, side=side)


@replaces("isin.Tensor_Tensor")
def _is_in(x: Tensor, others: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    found = (x.unsqueeze(-1) == others.reshape(-1)).any(-1)
    return torch.logical_not(found) if invert else found


@replaces("isin.Tensor_Scalar")
def _is_number_in(x: Tensor, other: float, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    return x != other if invert else x == other


@replaces("count_nonzero.default")
def _count(x: Tensor, dim: int | None = None) -> Tensor:
    found = x != 0
    return found.sum() if dim is None else found.sum(dim)


@replaces("count_nonzero.dim_IntList")
def _count_along(x: Tensor, dim: Sequence[int]) -> Tensor:
    return (x != 0).sum(list(dim)) if dim else (x != 0).sum()


@replaces("all.dims")
def _all_along(x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    places = range(x.dim()) if not dim else sorted((d % x.dim() for d in dim), reverse=True)
    result = x if x.dim() else torch.all(x)
    for place in sorted(places, reverse=True):
        result = torch.all(result, place, keepdim)
    return result


@replaces("nansum.default")
def _nansum(
    x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    numbers = torch.where(torch.isnan(x), 0.0, x) if x.is_floating_point() else x
    axes = list(range(x.dim())) if not dim else list(dim)
    return torch.sum(numbers, axes, keepdim, dtype=dtype)


@replaces("std_mean.correction")
def _deviation_and_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(x, None if dim is None else list(dim), correction=correction, keepdim=keepdim)
    return torch.sqrt(variance), mean


@replaces("histc.default")
def _histogram(value: Tensor, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    """`histc` with given limits: how many numbers lie in each of the equal parts."""
    if low == high:
        return NotImplemented
    place = ((value.reshape(-1) - low) / (high - low) * bins).floor()
    inside = (value.reshape(-1) >= low) & (value.reshape(-1) <= high)
    place = torch.where(place >= bins, bins - 1.0, place)
    each = torch.arange(bins, device=value.device).to(value.dtype)
    return ((place.unsqueeze(0) == each.unsqueeze(1)) & inside).to(value.dtype).sum(1)
