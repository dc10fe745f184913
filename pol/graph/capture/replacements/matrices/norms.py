"""Norms and distances of any order, by sums of powers, and weights as a length times a direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


def _size_of(x: Tensor, p: float = 2, dims: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """torch.linalg.vector_norm."""
    size: Tensor = torch.linalg.vector_norm(x, p, dims, keepdim)
    return size


@replaces("linalg_vector_norm.default")
def _norm(
    x: Tensor, p: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if dtype is not None:
        return _size_of(x.to(dtype), p, dim, keepdim)
    if p in {1, 2, math.inf, -math.inf}:
        return NotImplemented
    axes = list(range(x.dim())) if dim is None else list(dim)
    if p == 0:
        return (x != 0).to(x.dtype).sum(axes, keepdim)
    return torch.pow(torch.pow(torch.abs(x), p).sum(axes, keepdim), 1.0 / p)


@replaces("dist.default")
def _distance(a: Tensor, b: Tensor, p: float = 2) -> Tensor:
    return _size_of(a - b, p)


@replaces("renorm.default")
def _renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    axes = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
    size = _size_of(x, p, axes, True)
    return x * torch.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


def _apart(a: Tensor, b: Tensor) -> Tensor:
    """All differences of rows."""
    return a.unsqueeze(-2) - b.unsqueeze(-3)


@replaces("_cdist_forward.default")
def _distances(a: Tensor, b: Tensor, p: float, compute_mode: int | None) -> Tensor:
    return _size_of(_apart(a, b), p, [-1])


@replaces("_euclidean_dist.default")
def _euclidean_distances(a: Tensor, b: Tensor) -> Tensor:
    return _size_of(_apart(a, b), 2, [-1])


@replaces("_cdist_backward.default")
def _distances_backward(gradient: Tensor, a: Tensor, b: Tensor, p: float, distances: Tensor) -> Tensor:
    return (gradient.unsqueeze(-1) * _slope(_apart(a, b), distances.unsqueeze(-1), p)).sum(-2)


def _slope(apart: Tensor, whole: Tensor, p: float) -> Tensor:
    """|d|_p' = sign(d) (|d| / |d|_p)^(p - 1), and 0 where the distance is 0."""
    if p == 0:
        return torch.zeros_like(apart)
    if p == math.inf:
        slope = torch.sign(apart) * (torch.abs(apart) == whole).to(apart.dtype)
    elif p == 1:
        slope = torch.sign(apart)
    elif p == 2:
        slope = apart / whole
    else:
        slope = torch.sign(apart) * torch.pow(torch.abs(apart) / whole, p - 1)
        slope = torch.where(apart == 0, 0.0, slope)
    return torch.where(whole == 0, 0.0, slope)


@replaces("_pdist_forward.default")
def _pair_distances(x: Tensor, p: float = 2) -> Tensor:
    first, second = torch.triu_indices(len(x), len(x), 1)
    return _size_of(x[first] - x[second], p, [-1])


@replaces("_pdist_backward.default")
def _pair_distances_backward(gradient: Tensor, x: Tensor, p: float, distances: Tensor) -> Tensor:
    first, second = torch.triu_indices(len(x), len(x), 1)
    slope = gradient.unsqueeze(-1) * _slope(x[first] - x[second], distances.unsqueeze(-1), p)
    return torch.index_add(torch.index_add(torch.zeros_like(x), 0, first, slope), 0, second, -slope)


@replaces("_weight_norm_interface.default")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    size = torch.linalg.vector_norm(v.float(), 2, axes, True)
    return (v * (g / size.to(g.dtype))).to(v.dtype), size


@replaces("_weight_norm_interface_backward.default")
def _weight_norm_backward(gradient: Tensor, v: Tensor, g: Tensor, size: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    # w = g v / |v|: dg = sum(dw v) / |v|, and dv = g / |v| (dw - v dg / |v|).
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    by_size = (gradient * v).sum(axes, True) / size
    by_vector = (g / size) * (gradient - v * (by_size / size))
    return by_vector.to(v.dtype), by_size.to(g.dtype)
