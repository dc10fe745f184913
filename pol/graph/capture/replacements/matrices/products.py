"""Products of vectors and matrices."""

from __future__ import annotations

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


@replaces("vdot.default")
def _vdot(a: Tensor, b: Tensor) -> Tensor:
    return torch.dot(a, b)


@replaces("addr.default")
def _addr(start: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    outer = alpha * (a.unsqueeze(1) * b) if alpha != 1 else a.unsqueeze(1) * b
    return (start if beta == 1 else beta * start) + outer if beta else outer


@replaces("addbmm.default")
def _addbmm(start: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    total = torch.bmm(a, b).sum(0)
    total = total if alpha == 1 else alpha * total
    return (start if beta == 1 else beta * start) + total if beta else total


@replaces("linalg_cross.default")
def _cross(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
    a, b = torch.broadcast_tensors(a, b)  # type: ignore[no-untyped-call]  # torch declares no types
    ahead, behind = (torch.roll(a, -1, dim), torch.roll(b, -2, dim)), (torch.roll(a, -2, dim), torch.roll(b, -1, dim))
    return ahead[0] * ahead[1] - behind[0] * behind[1]
