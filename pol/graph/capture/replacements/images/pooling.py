"""Adaptive maximum pooling, and the inverse of maximum pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


@replaces("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _adaptive_max_pool(value: Tensor, outputs: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The greatest of each part, floor(i * n / m) .. ceil((i + 1) * n / m) per dimension, and its flat position.

    The last dimension goes first: of equal numbers, the first one in memory is found.
    """
    rank = len(outputs)
    sizes = value.shape[-rank:]
    index: Tensor | None = None
    for axis in reversed(range(rank)):
        dim = axis - rank
        size, count = sizes[axis], outputs[axis]
        values, places = [], []
        for part in range(count):
            start, end = part * size // count, -(-(part + 1) * size // count)
            greatest, at = value.narrow(dim, start, end - start).max(dim, keepdim=True)
            own = (at + start) * prod(sizes[axis + 1 :])
            if index is not None:
                own = own + index.narrow(dim, start, end - start).gather(dim, at)
            values.append(greatest)
            places.append(own)
        value, index = torch.cat(values, dim), torch.cat(places, dim)
    if index is None:
        raise AssertionError("pooling has a dimension")
    return value, index


def _adaptive_max_pool_backward(rank: int) -> Callable[..., Tensor]:
    def backward(gradient: Tensor, value: Tensor, index: Tensor) -> Tensor:
        """At its flat position in every channel."""
        flat = value.new_zeros(*value.shape[:-rank], prod(value.shape[-rank:]))
        return flat.scatter_add(-1, index.flatten(-rank), gradient.flatten(-rank)).reshape(value.shape)

    return backward


def _max_unpool(rank: int) -> Callable[..., Tensor]:
    def unpooled(value: Tensor, index: Tensor, outputs: Sequence[int], *_: Any) -> Tensor:
        """The value at its flat positions, else 0."""
        flat = value.new_zeros(*value.shape[:-rank], prod(outputs))
        return flat.scatter(-1, index.flatten(-rank), value.flatten(-rank)).reshape(*value.shape[:-rank], *outputs)

    return unpooled


for _rank in (2, 3):
    replaces(f"adaptive_max_pool{_rank}d_backward.default")(_adaptive_max_pool_backward(_rank))
    replaces(f"max_unpool{_rank}d.default")(_max_unpool(_rank))
