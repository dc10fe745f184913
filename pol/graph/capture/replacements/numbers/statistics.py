"""Functions of torch whose own code reads numbers of tensors: quantiles, covariances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_KINDS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(skips_nan: bool) -> Callable[..., Tensor]:
    def quantile(
        x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        if interpolation not in _KINDS:
            raise ValueError(f"interpolation is one of {', '.join(_KINDS)}, not {interpolation!r}")
        rows = x.reshape(-1) if dim is None else x.unsqueeze(-1).transpose(dim % x.dim(), -1)
        kept = [1] * x.dim() if dim is None else list(rows.shape[:-1])
        rows = rows.reshape(*kept, rows.shape[-1])
        share = q.reshape(-1) if isinstance(q, Tensor) else torch.full((1,), q)
        found = _at_shares(rows, share, interpolation, skips_nan).movedim(-1, 0)
        if not keepdim:
            found = found.reshape(len(share)) if dim is None else found.squeeze(1 + dim % x.dim())
        return found if isinstance(q, Tensor) and q.dim() else found.squeeze(0)

    return quantile


def _at_shares(rows: Tensor, share: Tensor, interpolation: str, skips_nan: bool) -> Tensor:
    """Numbers at shares of the sorted last dimension; NaN is sorted to its end."""
    values, size = torch.sort(rows, -1)[0], rows.shape[-1]
    count = (rows.detach() == rows.detach()).sum(-1, keepdim=True)
    if skips_nan:
        place = share * torch.clamp(count - 1, min=0)
    else:
        place = torch.where(count < size, size - 1.0, share * (size - 1))
    if interpolation == "nearest":
        place = torch.round(place)
    below, above = torch.floor(place), torch.ceil(place)
    low, high = (torch.gather(values, -1, at.long()) for at in (below, above))
    if interpolation == "lower":
        return low
    if interpolation == "higher":
        return high
    return torch.lerp(low, high, torch.full_like(place, 0.5) if interpolation == "midpoint" else place - below)


def _covariance(
    x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    if fweights is not None or aweights is not None:
        return torch.cov(x, correction=correction, fweights=fweights, aweights=aweights)
    rows = x.unsqueeze(0) if x.dim() < 2 else x
    away = rows - rows.mean(1, keepdim=True)
    return ((away @ away.mT) / max(rows.shape[1] - correction, 0)).squeeze()


def _correlation(x: Tensor) -> Tensor:
    matrix = _covariance(x)
    if not matrix.dim():
        return matrix / matrix
    deviation = torch.sqrt(torch.diagonal(matrix))
    return (matrix / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1.0, 1.0)


FUNCTIONS: Mapping[Any, Callable[..., Tensor]] = {
    **dict.fromkeys((torch.quantile, torch.Tensor.quantile), _quantile(skips_nan=False)),
    **dict.fromkeys((torch.cov, torch.Tensor.cov), _covariance),
    **dict.fromkeys((torch.corrcoef, torch.Tensor.corrcoef), _correlation),
    **dict.fromkeys((torch.nanquantile, torch.Tensor.nanquantile), _quantile(skips_nan=True)),
}
"""By torch's function: what a trace runs in its place."""
