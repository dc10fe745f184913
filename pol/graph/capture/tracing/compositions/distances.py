"""Distances of all pairs of rows, `cdist` and `pdist`, and their gradients, which vanish where rows are equal."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor


def pairwise(first: Tensor, second: Tensor, p: float, _mode: int | None = None) -> Tensor:
    """(..., rows, terms) and (..., others, terms) to (..., rows, others)."""
    return _norm(first.unsqueeze(-2) - second.unsqueeze(-3), p)


def pairwise_backward(gradient: Tensor, first: Tensor, second: Tensor, p: float, distance: Tensor) -> Tensor:
    """The gradient of the first rows."""
    apart = first.unsqueeze(-2) - second.unsqueeze(-3)
    return _slope(gradient.unsqueeze(-1), apart, p, distance.unsqueeze(-1)).sum(-2)


def within(rows: Tensor, p: float = 2) -> Tensor:
    """(rows, terms) to the distances of all pairs, the first row's first."""
    return _norm(_differences(rows), p)


def within_backward(gradient: Tensor, rows: Tensor, p: float, distance: Tensor) -> Tensor:
    """The gradient of the rows."""
    slope = _slope(gradient.unsqueeze(-1), _differences(rows), p, distance.unsqueeze(-1))
    first, second = _pairs(rows)
    total = torch.zeros_like(rows)
    return total.index_add(0, first, slope).index_add(0, second, -slope)


def _pairs(rows: Tensor) -> tuple[Tensor, Tensor]:
    pairs = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    first, second = (torch.tensor([pair[side] for pair in pairs], device=rows.device) for side in (0, 1))
    return first, second


def _differences(rows: Tensor) -> Tensor:
    first, second = _pairs(rows)
    return rows.index_select(0, first) - rows.index_select(0, second)


def _norm(apart: Tensor, p: float) -> Tensor:
    if p == 0:
        return (apart != 0).to(apart.dtype).sum(-1)
    if p == 1:
        return apart.abs().sum(-1)
    if p == 2:  # the Euclidean norm
        return (apart * apart).sum(-1).sqrt()
    if p == inf:
        return apart.abs().amax(-1)
    return apart.abs().pow(p).sum(-1).pow(1 / p)


def _slope(gradient: Tensor, apart: Tensor, p: float, distance: Tensor) -> Tensor:
    """Of every difference: d norm / d x = sign(x) * (|x| / norm)^(p - 1), and 0 where the norm is 0."""
    if p == 0:
        return torch.zeros_like(apart)
    if p == 1:
        return gradient * apart.sign()
    if p == inf:
        return torch.where(apart.abs() == distance, gradient * apart.sign(), 0.0)
    zero = distance == 0
    divisor = torch.where(zero, 1.0, distance)
    if p == 2:  # the Euclidean norm
        return torch.where(zero, 0.0, gradient * apart / divisor)
    size = apart.abs()
    zero = zero | (size == 0)
    ratio = torch.where(zero, 1.0, size) / divisor
    return torch.where(zero, 0.0, gradient * apart.sign() * ratio.pow(p - 1))
