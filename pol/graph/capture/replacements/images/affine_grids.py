"""Grids of coordinates, and channels in another order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces


@replaces("affine_grid_generator.default")
def _affine_grid(turn: Tensor, size: Sequence[int], corners: bool) -> Tensor:
    """The coordinates (examples, positions..., coordinates) of an image of this size under affine maps."""
    points = _points(turn, size, corners)
    grid = torch.matmul(points, turn.transpose(1, 2))
    return grid.reshape(size[0], *size[2:], len(size) - 2)


@replaces("affine_grid_generator_backward.default")
def _affine_grid_backward(gradient: Tensor, size: Sequence[int], corners: bool) -> Tensor:
    """The gradient of the maps."""
    flat = gradient.reshape(size[0], -1, len(size) - 2)
    return torch.matmul(flat.transpose(1, 2), _points(gradient, size, corners))


def _points(like: Tensor, size: Sequence[int], corners: bool) -> Tensor:
    """(positions, coordinates and 1), the last dimension first."""
    sizes = size[2:]
    columns = []
    for axis in reversed(range(len(sizes))):
        count = sizes[axis]
        place = torch.arange(count, device=like.device).to(like.dtype)
        step = 2.0 / (max(count - 1, 1) if corners else count)
        start = (-1.0 if count > 1 else 0.0) if corners else 1.0 / count - 1.0
        shape = [1] * len(sizes)
        shape[axis] = count
        columns.append((place * step + start).reshape(shape).expand(tuple(sizes)).reshape(-1))
    return torch.stack([*columns, torch.ones_like(columns[0])], -1)


@replaces("channel_shuffle.default", "native_channel_shuffle.default")
def _channel_shuffle(value: Tensor, groups: int) -> Tensor:
    """Channel by channel from each of the groups."""
    examples, channels, *sizes = value.shape
    return value.reshape(examples, groups, channels // groups, *sizes).transpose(1, 2).reshape(value.shape)
