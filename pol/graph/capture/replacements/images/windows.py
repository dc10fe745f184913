"""Patches of images as columns and back, and borders that repeat."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pol.graph.capture.replacements.pullback import of_first
from pol.graph.capture.replacements.table import replaces


@replaces("im2col.default")
def _im2col(
    value: Tensor, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """(..., channels, height, width) to (..., channels * taps, patches)."""
    value = functional.pad(value, (padding[1], padding[1], padding[0], padding[0]))
    for axis in (0, 1):
        value = value.unfold(-2, dilation[axis] * (kernel[axis] - 1) + 1, stride[axis])
    value = value[..., :: dilation[0], :: dilation[1]]
    # (..., channels, rows, columns, taps, taps)
    rank = value.dim()
    value = value.permute(*range(rank - 4), rank - 2, rank - 1, rank - 4, rank - 3)
    channels = value.shape[rank - 5] * kernel[0] * kernel[1]
    return value.reshape(*value.shape[: rank - 5], channels, value.shape[-2] * value.shape[-1])


@replaces("col2im.default")
def _col2im(
    columns: Tensor,
    outputs: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """The adjoint of `_im2col`: every position is the sum of the patches that hold it."""
    sizes = [output + 2 * pad for output, pad in zip(outputs, padding, strict=True)]
    reach = [gap * (taps - 1) + 1 for gap, taps in zip(dilation, kernel, strict=True)]
    counts = [(size - far) // step + 1 for size, far, step in zip(sizes, reach, stride, strict=True)]
    *lead, channels, _ = columns.shape
    value = columns.reshape(*lead, channels // (kernel[0] * kernel[1]), *kernel, *counts)
    rank = value.dim()
    value = value.permute(*range(rank - 4), rank - 2, rank - 1, rank - 4, rank - 3)
    for axis in (0, 1):
        if dilation[axis] > 1:
            value = _spread(value, rank - 2 + axis, reach[axis], dilation[axis])
    # (..., rows, columns, taps, taps): the columns first, then the rows.
    before = value.shape[: rank - 4]
    width = [*before, counts[0], sizes[1], reach[0]]
    value = torch.ops.aten.unfold_backward(value, width, rank - 3, reach[1], stride[1])
    value = torch.ops.aten.unfold_backward(value, [*before, sizes[0], sizes[1]], rank - 4, reach[0], stride[0])
    return functional.pad(value, (-padding[1], -padding[1], -padding[0], -padding[0]))


def _spread(value: Tensor, axis: int, size: int, step: int) -> Tensor:
    """Zeros between the taps."""
    shape = list(value.shape)
    shape[axis] = size
    spread: Tensor = torch.ops.aten.slice_backward(value, shape, axis, 0, size, step)
    return spread


@replaces("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def _replicated(value: Tensor, widths: Sequence[int]) -> Tensor:
    """The borders repeated; negative widths cut."""
    for number in range(len(widths) // 2):
        dim = value.dim() - 1 - number
        before, after = widths[2 * number], widths[2 * number + 1]
        size = value.shape[dim]
        value = value.narrow(dim, max(0, -before), size - max(0, -before) - max(0, -after))
        parts = [value]
        if before > 0:
            parts.insert(0, _repeated(value.narrow(dim, 0, 1), dim, before))
        if after > 0:
            parts.append(_repeated(value.narrow(dim, value.shape[dim] - 1, 1), dim, after))
        value = torch.cat(parts, dim) if len(parts) > 1 else value
    return value


replaces(*(f"replication_pad{rank}d_backward.default" for rank in (1, 2, 3)))(of_first(_replicated))


def _repeated(value: Tensor, dim: int, count: int) -> Tensor:
    shape = list(value.shape)
    shape[dim] = count
    return value.expand(shape)
