"""Bicubic and antialiased interpolation: linear in each dimension, so a product with a matrix that torch gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.replacements.table import replaces

Operation = Callable[..., Any]


def _resized(operation: Operation) -> Callable[..., Tensor]:
    """Images resized as the operation does."""

    def resized(
        value: Tensor, outputs: Sequence[int], corners: bool, height: float | None = None, width: float | None = None
    ) -> Tensor:
        rows, columns = _matrices(operation, value.shape[-2:], outputs, corners, (height, width))
        return torch.matmul(torch.matmul(rows, value), columns.t())

    return resized


def _spread(operation: Operation) -> Callable[..., Tensor]:
    """The adjoint of `_resized`."""

    def spread(
        gradient: Tensor,
        outputs: Sequence[int],
        inputs: Sequence[int],
        corners: bool,
        height: float | None = None,
        width: float | None = None,
    ) -> Tensor:
        rows, columns = _matrices(operation, inputs[-2:], outputs, corners, (height, width))
        return torch.matmul(torch.matmul(rows.t(), gradient), columns)

    return spread


def _matrices(
    operation: Operation,
    sizes: Sequence[int],
    outputs: Sequence[int],
    corners: bool,
    scales: tuple[float | None, float | None],
) -> list[Tensor]:
    return [
        _matrix(operation, *numbers, corners, scale) for *numbers, scale in zip(sizes, outputs, scales, strict=True)
    ]


@cache
def _matrix(operation: Operation, size: int, output: int, corners: bool, scale: float | None) -> Tensor:
    """(outputs, positions): what torch's own kernel makes of each position, outside of the trace."""
    with temporarily_clear_interpreter_stack(), _disable_current_modes(), torch.no_grad():
        # Three columns that stay as they are: images of a single column take another path through torch's kernels.
        units = torch.eye(size).reshape(size, 1, size, 1).expand(size, 1, size, 3).contiguous()
        found: Tensor = operation(units, [output, 3], corners, scale, None)
        return found[:, 0, :, 1].t().contiguous()


for _name in ("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"):
    _operation = getattr(torch.ops.aten, _name).default
    replaces(f"{_name}.default")(_resized(_operation))
    replaces(f"{_name}_backward.default")(_spread(_operation))
