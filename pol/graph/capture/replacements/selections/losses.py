"""Losses of selected rows: the loss of each element, then its mean or sum; labels of other rows are ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from pol.graph.capture.replacements.selections.functions import (
    bound,
    each_row,
    has_selected_rows,
    of_rows,
    refused,
    same_selection,
)
from pol.graph.capture.replacements.selections.reductions import mean
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows

_LOSSES = (
    "l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss", "margin_ranking_loss",
    "hinge_embedding_loss", "cosine_embedding_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
)  # fmt: skip


@of_rows(*_LOSSES)
def loss_of_rows(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A loss with its reduction."""
    named = bound(func, args, kwargs)
    reduction = named.arguments["reduction"]
    if named.arguments.get("size_average") is not None or named.arguments.get("reduce") is not None:
        raise refused(f"{func.__name__} with size_average or reduce")
    named.arguments["reduction"] = "none"
    losses = each_row(func, named.args, named.kwargs)
    if reduction == "none":
        return losses
    if reduction == "mean":
        return mean(func, losses)
    total = losses.or_else(0).sum()
    return total / losses.selection.number() if reduction == "batchmean" else total


@of_rows("cross_entropy", "nll_loss")
def _classes(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Class labels of other rows are those that the loss ignores."""
    named = bound(func, args, kwargs)
    if named.arguments["reduction"] == "none":
        return NotImplemented
    given, target = same_selection((named.arguments["input"], named.arguments["target"]))
    if not isinstance(given, SelectedRows) or not isinstance(target, SelectedRows):
        raise refused(func.__name__)
    if target.rows.is_floating_point():
        return loss_of_rows(functional.cross_entropy, *args, **kwargs)
    axis = target.dim_of_rows
    if given.dim_of_rows != axis + (axis > 0):  # behind that of the classes
        raise refused(func.__name__)
    named.arguments["input"] = given.rows
    named.arguments["target"] = target.or_else(named.arguments["ignore_index"])
    return func(*named.args, **named.kwargs)


@of_rows("ctc_loss")
def _ctc(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Labels of all examples in one row, as a mask of padded ones gives them, are padded again."""
    named = bound(func, args, kwargs)
    targets = named.arguments["targets"]
    others = [value for name, value in named.arguments.items() if name != "targets"]
    if not isinstance(targets, SelectedRows) or has_selected_rows(others) or targets.rows.dim() != 1:
        raise refused("ctc_loss")
    if len(targets.selection.shape) != len(("example", "place")):
        raise refused("ctc_loss")
    for name in ("input_lengths", "target_lengths"):
        named.arguments[name] = torch.as_tensor(named.arguments[name])
    lengths = named.arguments["target_lengths"]
    places = ((lengths.cumsum(0) - lengths)[:, None] + torch.arange(targets.selection.shape[1])).clamp(
        max=targets.selection.size - 1
    )
    named.arguments["targets"] = targets.in_order().rows[places]
    return func(*named.args, **named.kwargs)
