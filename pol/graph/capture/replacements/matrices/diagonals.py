"""Diagonals of matrices, and matrices made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


def _on_diagonal(rows: int, columns: int, offset: int, like: Tensor) -> Tensor:
    """A mask of a matrix: where the column is the row plus the offset."""
    row = torch.arange(rows, device=like.device).unsqueeze(1)
    return row + offset == torch.arange(columns, device=like.device)


@replaces("diag_embed.default")
def _diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    size = x.shape[-1] + abs(offset)
    rank = x.dim() + 1
    first, second = dim1 % rank, dim2 % rank
    if first > second:
        first, second, offset = second, first, -offset
    # Row i of the diagonal stands at column i + offset.
    pad = (0, size - x.shape[-1]) if offset >= 0 else (size - x.shape[-1], 0)
    rows = torch.nn.functional.pad(x, pad) if offset else x
    matrix = torch.where(_on_diagonal(size, size, offset, x), rows.unsqueeze(-1), torch.zeros_like(rows).unsqueeze(-1))
    order = list(range(rank - 2))
    order.insert(first, rank - 2)
    order.insert(second, rank - 1)
    return matrix.permute(order)


@replaces("diagonal_scatter.default")
def _diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    rank = x.dim()
    first, second = dim1 % rank, dim2 % rank
    others = [axis for axis in range(rank) if axis not in {first, second}]
    order = [*others, first, second]
    rows, columns = x.shape[first], x.shape[second]
    before = max(-offset, 0)
    wide = torch.nn.functional.pad(source, (before, rows - before - source.shape[-1]))
    mask = _on_diagonal(rows, columns, offset, x)
    result = torch.where(mask, wide.unsqueeze(-1), x.permute(order))
    return result.permute([order.index(axis) for axis in range(rank)])


@replaces("diagonal_backward.default")
def _diagonal_backward(gradient: Tensor, sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    zeros = torch.zeros(sizes, dtype=gradient.dtype, device=gradient.device)
    return _diagonal_scatter(zeros, gradient, offset, dim1, dim2)


@replaces("diagonal_copy.default")
def _diagonal_copy(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return torch.diagonal(x, offset, dim1, dim2)


@replaces("trace.default")
def _trace(x: Tensor) -> Tensor:
    return torch.diagonal(x).sum()


@replaces("eye.default")
def _eye(n: int, **options: Any) -> Tensor:
    return _rectangular_eye(n, n, **options)


@replaces("eye.m")
def _rectangular_eye(n: int, m: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    row = torch.arange(n).unsqueeze(1)
    return (row == torch.arange(m)).to(torch.get_default_dtype() if dtype is None else dtype)


@replaces("block_diag.default")
def _block_diag(blocks: list[Tensor]) -> Tensor:
    matrices = [block.reshape(1, -1) if block.dim() < 2 else block for block in blocks]
    width = sum(matrix.shape[1] for matrix in matrices)
    rows, before = [], 0
    for matrix in matrices:
        rows.append(torch.nn.functional.pad(matrix, (before, width - before - matrix.shape[1])))
        before += matrix.shape[1]
    return torch.cat(rows)
