"""`multilabel_margin_loss`: every label of an example against every class that is none of its labels."""

from __future__ import annotations

import torch
from torch import Tensor

MEAN, SUM = 1, 2


def multilabel_margin_loss(value: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The loss, and which classes are labels; labels end before the first negative number."""
    rows, labels = (item if item.dim() > 1 else item.unsqueeze(0) for item in (value, target))
    classes = rows.shape[1]
    is_label = (labels < 0).to(torch.int64).cumsum(1) == 0
    labels = torch.where(is_label, labels, 0)
    each = torch.arange(classes, device=value.device)
    is_target = ((labels.unsqueeze(2) == each) & is_label.unsqueeze(2)).any(1)
    margin = 1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)
    counts = is_label.unsqueeze(2) & ~is_target.unsqueeze(1)
    losses = torch.where(counts, margin.relu(), 0.0).sum((1, 2)) / classes
    shown = is_target.to(value.dtype).reshape(target.shape)
    if reduction == MEAN:
        return losses.mean(), shown
    if reduction == SUM:
        return losses.sum(), shown
    return (losses if value.dim() > 1 else losses.reshape(())), shown
