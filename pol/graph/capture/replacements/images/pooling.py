"""Adaptive maximum pooling, and the inverse of maximum pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor


def adaptive_max_pool(value: Tensor, outputs: Sequence[int]) -> tuple[Tensor, Tensor]:
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


def at_places(gradient: Tensor, value: Tensor, index: Tensor, rank: int) -> Tensor:
    """The gradient of pooling over the last `rank` dimensions: at its flat position in every channel."""
    flat = value.new_zeros(*value.shape[:-rank], prod(value.shape[-rank:]))
    return flat.scatter_add(-1, index.flatten(-rank), gradient.flatten(-rank)).reshape(value.shape)


def max_unpool(value: Tensor, index: Tensor, outputs: Sequence[int], rank: int) -> Tensor:
    """The value at its flat positions, else 0."""
    flat = value.new_zeros(*value.shape[:-rank], prod(outputs))
    return flat.scatter(-1, index.flatten(-rank), value.flatten(-rank)).reshape(*value.shape[:-rank], *outputs)
