"""What a capture writes in place of ATen operations that have no rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from pol.graph.lowering.advice import DECOMPOSED


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """torch's own decompositions of DECOMPOSED, and ours of memory without contents and of tensors without words."""
    aten = torch.ops.aten
    return {
        **get_decompositions([getattr(aten, name) for name in DECOMPOSED]),
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
    """Memory that torch leaves uninitialised is zero: what nobody reads costs nothing, and the rest is defined."""
    chosen = options.get("dtype")
    return torch.full(size, 0, dtype=torch.get_default_dtype() if chosen is None else chosen)


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """What is left of `target.copy_(source)` where nothing is written."""
    return source.to(target.dtype).expand(target.shape)


def _cat(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Without the empty tensors that stand for "nothing yet", as in the caches of text generation."""
    some = [tensor for tensor in tensors if tensor.numel()]
    if len(some) == len(tensors) or not some:
        return NotImplemented
    return torch.cat(some, dim)
