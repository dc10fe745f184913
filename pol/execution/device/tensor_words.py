"""Tensors of torch as buffers of a device that holds them: nothing is copied to the host."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pol.execution.device.device import Buffer
from pol.graph.aten_graph import AtenType
from pol.graph.tensor_type import DType


def buffer_of(tensor: Tensor) -> Buffer:
    """The bytes of a dense tensor of at least one element as words, zeros after the last byte."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    missing = -flat.numel() % 4
    if missing:
        flat = torch.cat([flat, flat.new_zeros(missing)])
    elif flat.storage_offset() % 4:  # a part of a tensor of smaller elements
        flat = flat.clone()
    words = flat.view(torch.int32)
    return words.numpy().view(np.uint32) if words.is_cpu else words


def buffer_of_step(type_: AtenType, tensor: Tensor) -> Buffer:
    """The words of a tensor of a step; integers must fit in 32 bits, which `pol.graph.capture.to_words` checks."""
    held = torch.float32 if type_.words.dtype is DType.F32 else torch.int32
    return buffer_of(tensor.to(held))
