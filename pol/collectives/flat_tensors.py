"""Tensors that travel together, as one row of elements."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def flatten(tensors: Sequence[Tensor], multiple: int) -> Tensor:
    """All elements, each tensor's in row-major order, with zeros up to a multiple of a number of elements.

    The memory of the tensor itself if that is one contiguous tensor of such a size.
    """
    if not tensors:
        return torch.empty(0)
    size = sum(tensor.numel() for tensor in tensors)
    if len(tensors) == 1 and size % multiple == 0:
        return tensors[0].contiguous().view(-1)
    flat = tensors[0].new_zeros(-(-size // multiple) * multiple)
    begin = 0
    for tensor in tensors:
        flat[begin : begin + tensor.numel()].view(tensor.shape).copy_(tensor)
        begin += tensor.numel()
    return flat


def write_back(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Gives each tensor its elements from the row."""
    begin = 0
    for tensor in tensors:
        if tensor.data_ptr() != flat.data_ptr() or not tensor.is_contiguous():
            tensor.copy_(flat[begin : begin + tensor.numel()].view(tensor.shape))
        begin += tensor.numel()
