"""Replacements of ATen operations that have no rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from pol.graph.capture.replacements import REPLACEMENTS
from pol.graph.lowering.advice import DECOMPOSED


def decompositions(with_replacements: bool = True) -> Mapping[Any, Callable[..., Any]]:
    """torch's own decompositions of DECOMPOSED, our replacements, and those of memory and of empty tensors.

    Replacements agree with torch up to rounding, not bit for bit.
    """
    aten = torch.ops.aten
    return {
        **get_decompositions([getattr(aten, name) for name in DECOMPOSED]),
        torch.ops.prims.convert_element_type.default: lambda tensor, dtype: tensor.to(dtype),
        **(REPLACEMENTS if with_replacements else {}),
        aten.empty_like.default: _zeros_like,
        aten.empty.memory_format: _zeros,
        aten.new_empty.default: lambda tensor, size, **options: _zeros(size, **{"dtype": tensor.dtype, **options}),
        aten.cat.default: _cat,
        aten.copy.default: _copied,
        aten.zero.default: _zeros_like,
    }


def _zeros_like(tensor: Tensor, **options: Any) -> Tensor:
    return _zeros(tensor.shape, **{"dtype": tensor.dtype, **options})


def _zeros(size: Sequence[int], **options: Any) -> Tensor:
    """Zeros in place of uninitialized memory: unused ones are dropped, and used ones are defined."""
    chosen = options.get("dtype")
    return torch.full(size, 0, dtype=torch.get_default_dtype() if chosen is None else chosen)


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The result of `target.copy_(source)` in a functional graph."""
    return source.to(target.dtype).expand(target.shape)


def _cat(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Concatenation without empty tensors, such as the initial caches of text generation."""
    some = [tensor for tensor in tensors if tensor.numel()]
    if len(some) == len(tensors) or not some:
        return NotImplemented
    return torch.cat(some, dim)
