"""`embedding_bag`: rows of a table summed, averaged or maximized over bags of tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces

SUM, MEAN, MAX = 0, 1, 2


@replaces("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _embedding_bag(
    table: Tensor,
    tokens: Tensor,
    offsets: Tensor,
    scale_by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bags, the bag of each token, the tokens that count in each bag, and of a maximum their rows in the table."""
    offsets = offsets[:-1] if include_last_offset else offsets
    bags, count = offsets.shape[0], tokens.shape[0]
    place = torch.arange(count, device=tokens.device)
    bag = (place.unsqueeze(0) >= offsets.unsqueeze(1)).to(torch.int64).sum(0) - 1
    counted = tokens != padding
    rows = table.index_select(0, tokens)
    inside = (bag.unsqueeze(0) == torch.arange(bags, device=tokens.device).unsqueeze(1)) & counted
    sizes = inside.to(torch.int64).sum(1)
    nothing = torch.zeros((bags, table.shape[1]) if mode == MAX else (bags,), dtype=torch.int64, device=tokens.device)
    if mode == MAX:
        seen = torch.where(inside.unsqueeze(2), rows.unsqueeze(0), -torch.inf)
        greatest, at = seen.max(1)
        is_empty = (sizes == 0).unsqueeze(1)
        chosen = tokens.index_select(0, at.reshape(-1)).reshape(at.shape)
        return torch.where(is_empty, 0.0, greatest), bag, sizes, torch.where(is_empty, -1, chosen)
    rows = rows if weights is None else rows * weights.unsqueeze(1)
    total = table.new_zeros(bags, table.shape[1]).index_add(0, bag, torch.where(counted.unsqueeze(1), rows, 0.0))
    if mode == MEAN:
        total = total / sizes.clamp(min=1).to(total.dtype).unsqueeze(1)
    return total, bag, sizes, nothing


@replaces("_embedding_bag_dense_backward.default")
def _embedding_bag_dense_backward(
    gradient: Tensor,
    tokens: Tensor,
    bag: Tensor,
    sizes: Tensor,
    chosen: Tensor,
    rows: int,
    scale_by_frequency: bool,
    mode: int,
    weights: Tensor | None,
    padding: int = -1,
) -> Tensor:
    """The gradient of the table."""
    if mode == MAX:
        given = torch.where(chosen >= 0, gradient, 0.0)
        return gradient.new_zeros(rows, gradient.shape[1]).scatter_add(0, chosen.clamp(min=0), given)
    if mode == MEAN:
        gradient = gradient / sizes.clamp(min=1).to(gradient.dtype).unsqueeze(1)
    per_token = gradient.index_select(0, bag)
    per_token = per_token if weights is None else per_token * weights.unsqueeze(1)
    result: Tensor = torch.ops.aten.embedding_dense_backward(per_token, tokens, rows, padding, scale_by_frequency)
    return result


@replaces("_embedding_bag_per_sample_weights_backward.default")
def _weights_backward(
    gradient: Tensor, table: Tensor, tokens: Tensor, _offsets: Tensor, bag: Tensor, _mode: int, padding: int = -1
) -> Tensor:
    """The gradient of the weights of tokens."""
    products = (gradient.index_select(0, bag) * table.index_select(0, tokens)).sum(1)
    return torch.where(tokens != padding, products, 0.0)


@replaces("_embedding_bag_backward.default")
def _embedding_bag_backward(
    gradient: Tensor, tokens: Tensor, _offsets: Tensor, bag: Tensor, sizes: Tensor, chosen: Tensor, rows: int,
    scale_by_frequency: bool, mode: int, _sparse: bool, weights: Tensor | None, padding: int = -1,
) -> Tensor:  # fmt: skip
    return _embedding_bag_dense_backward(
        gradient, tokens, bag, sizes, chosen, rows, scale_by_frequency, mode, weights, padding
    )
