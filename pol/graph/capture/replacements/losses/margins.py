"""Margin losses: every label of an example against every class that is none of its labels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp.decompositions import multi_margin_loss

from pol.graph.capture.replacements.pullback import of_first, pulled_back
from pol.graph.capture.replacements.table import replaces

MEAN, SUM = 1, 2


@replaces("multilabel_margin_loss_forward.default")
def _multilabel_margin_loss(value: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
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


@replaces("multilabel_margin_loss_backward.default")
def _multilabel_margin_loss_backward(
    gradient: Tensor, value: Tensor, target: Tensor, reduction: int, _is_target: Tensor
) -> Tensor:
    return pulled_back(lambda given: _multilabel_margin_loss(given, target, reduction)[0], gradient, value)[0]


replaces("multi_margin_loss_backward.default")(of_first(multi_margin_loss))
