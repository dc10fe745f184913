"""Quantiles, covariances and correlations, whose own code in torch reads numbers of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces_function

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


@replaces_function(torch.cov, Tensor.cov)
def _covariance(
    x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Any:
    if fweights is not None or aweights is not None:
        return NotImplemented
    rows = x.unsqueeze(0) if x.dim() < 2 else x
    away = rows - rows.mean(1, keepdim=True)
    return ((away @ away.mT) / max(rows.shape[1] - correction, 0)).squeeze()


@replaces_function(torch.corrcoef, Tensor.corrcoef)
def _correlation(x: Tensor) -> Tensor:
    matrix: Tensor = _covariance(x)
    if not matrix.dim():
        return matrix / matrix
    deviation = torch.sqrt(torch.diagonal(matrix))
    return (matrix / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1.0, 1.0)


replaces_function(torch.quantile, Tensor.quantile)(_quantile(skips_nan=False))
replaces_function(torch.nanquantile, Tensor.nanquantile)(_quantile(skips_nan=True))
