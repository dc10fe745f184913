"""Reading and writing at places: rows and flat positions."""

from __future__ import annotations

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


@replaces("take.default", exact=True)
def _take(value: Tensor, index: Tensor) -> Tensor:
    """Words by flat position."""
    return value.reshape(-1)[index]


@replaces("put.default", exact=True)
def _put(value: Tensor, index: Tensor, words: Tensor, accumulate: bool = False) -> Tensor:
    """Words written at flat positions."""
    flat = value.reshape(-1)
    written: Tensor = torch.ops.aten.index_put(flat, [index.reshape(-1)], words.reshape(-1), accumulate)
    return written.reshape(value.shape)


@replaces("index_reduce.default")
def _index_reduce(
    value: Tensor, dim: int, index: Tensor, source: Tensor, kind: str, include_self: bool = True
) -> Tensor:
    """Rows of the source reduced into the rows that a list of numbers names."""
    shape = [1] * source.dim()
    shape[dim] = -1
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return value.scatter_reduce(dim, places, source, kind, include_self=include_self)
