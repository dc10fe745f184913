"""Writing where a mask says so."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


@replaces("index_put.default", exact=True)
def index_put(value: Tensor, indices: Sequence[Tensor | None], words: Tensor, accumulate: bool = False) -> Any:
    """As torch's, whose boolean masks become a choice; NotImplemented for indices without a mask."""
    place = next((at for at, index in enumerate(indices) if index is not None and index.dtype is torch.bool), None)
    if place is None:
        return NotImplemented
    mask = indices[place]
    if mask is None or any(index is not None for at, index in enumerate(indices) if at != place):
        return NotImplemented
    after = value.dim() - place - mask.dim()
    wide = mask.reshape(*[1] * place, *mask.shape, *[1] * after)
    words = words.to(value.dtype)
    # The words have one dimension in the place of those of the mask, or none.
    lead = words.dim() - after
    if lead <= 0 or words.shape[lead - 1] == 1:
        chosen = _unrolled(words, place, mask.dim(), after)
    else:
        order = mask.reshape(-1).to(torch.int64).cumsum(0).clamp(min=1) - 1
        order = order.clamp(max=words.shape[lead - 1] - 1)
        chosen = words.index_select(lead - 1, order).reshape(*words.shape[: lead - 1], *mask.shape, *words.shape[lead:])
    chosen = value + chosen if accumulate else chosen
    return torch.where(wide, chosen, value)


def _unrolled(words: Tensor, place: int, rank: int, after: int) -> Tensor:
    """The one dimension of the masked positions as all dimensions of the mask."""
    lead = words.dim() - after
    if lead <= 0:
        return words
    return words.reshape(*words.shape[: lead - 1], *[1] * rank, *words.shape[lead:])


@replaces("masked_scatter.default", exact=True)
def _masked_scatter(value: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The next word of the source at each position of the mask."""
    value, mask = torch.broadcast_tensors(value, mask)  # type: ignore[no-untyped-call]  # torch declares no types
    words = source.reshape(-1).index_select(0, _numbers(mask, source.numel())).reshape(mask.shape)
    return torch.where(mask, words, value)


@replaces("masked_scatter_backward.default")
def _masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient of the source."""
    mask = mask.expand(gradient.shape)
    count = prod(sizes)
    given = torch.where(mask, gradient, 0.0).reshape(-1)
    return gradient.new_zeros(count).index_add(0, _numbers(mask, count), given).reshape(tuple(sizes))


def _numbers(mask: Tensor, count: int) -> Tensor:
    """How many positions of the mask come before each one."""
    return (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(0, max(count - 1, 0))
