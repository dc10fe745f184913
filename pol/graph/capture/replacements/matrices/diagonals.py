"""Matrices without decompositions: diagonals, products, factories, the weights of normalized layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

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


def _constant(operation: Any) -> Callable[..., Tensor]:
    """A tensor that numbers alone determine becomes a constant of the program, with torch's own numbers."""

    def created(*arguments: Any, **options: Any) -> Tensor:
        with _disable_current_modes():
            tensor: Tensor = operation(*arguments, **{**options, "device": "cpu", "layout": None, "pin_memory": None})
        return tensor

    return created


_WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
for _name in (
    *("linspace.default", "logspace.default", "tril_indices.default", "triu_indices.default"),
    *("fft_fftfreq.default", "fft_rfftfreq.default"),
    *(f"{window}.{overload}" for window in _WINDOWS for overload in ("default", "periodic")),
):
    _packet, _overload = _name.split(".")
    replaces(_name)(_constant(getattr(getattr(torch.ops.aten, _packet), _overload)))


@replaces("_weight_norm_interface.default")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    size = torch.linalg.vector_norm(v.float(), 2, axes, True)
    return (v * (g / size.to(g.dtype))).to(v.dtype), size


@replaces("_weight_norm_interface_backward.default")
def _weight_norm_backward(gradient: Tensor, v: Tensor, g: Tensor, size: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    # w = g v / |v|: dg = sum(dw v) / |v|, and dv = g / |v| (dw - v dg / |v|).
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    by_size = (gradient * v).sum(axes, True) / size
    by_vector = (g / size) * (gradient - v * (by_size / size))
    return by_vector.to(v.dtype), by_size.to(g.dtype)


@replaces("block_diag.default")
def _block_diag(blocks: list[Tensor]) -> Tensor:
    matrices = [block.reshape(1, -1) if block.dim() < 2 else block for block in blocks]
    width = sum(matrix.shape[1] for matrix in matrices)
    rows, before = [], 0
    for matrix in matrices:
        rows.append(torch.nn.functional.pad(matrix, (before, width - before - matrix.shape[1])))
        before += matrix.shape[1]
    return torch.cat(rows)
