"""int8 with a power of two for each chunk, four numbers a word: what a message holds of a pseudo-gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

CHUNK = 256
"""Numbers that share a scale."""


def flat(tensors: list[Tensor]) -> Tensor:
    """All numbers in one vector, filled up with zeros to whole chunks."""
    joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
    return functional.pad(joined, (0, -len(joined) % CHUNK))


def split(vector: Tensor, like: list[Tensor]) -> list[Tensor]:
    """The tensors of a `flat` vector, of the shapes of ``like``."""
    sizes = [tensor.numel() for tensor in like]
    parts = torch.split(vector[: sum(sizes)], sizes)
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


def quantized(vector: Tensor) -> tuple[Tensor, Tensor]:
    """Words of four int8 each, and the scale of each chunk.

    A scale is the least power of two, from 2^-40 on, at which the greatest number of the chunk is at most 127; numbers
    are rounded to the nearest, to even in the middle.
    """
    chunks = vector.view(-1, CHUNK)
    greatest = chunks.abs().amax(1, keepdim=True)
    scale = torch.full_like(greatest, 2.0**-40)
    for exponent in range(-39, 8):  # compared, not computed by a logarithm: exact in any arithmetic
        scale = torch.where(greatest > 127 * 2.0 ** (exponent - 1), torch.full_like(scale, 2.0**exponent), scale)
    numbers = torch.round(chunks / scale).clamp(-127, 127).to(torch.int32).view(-1, 4)
    low, second, third, high = (numbers & 255).unbind(1)
    return low | (second << 8) | (third << 16) | (high << 24), scale.view(-1)


def dequantized(words: Tensor, scale: Tensor) -> Tensor:
    """The numbers of `quantized`, as a vector."""
    parts = [(words << shift) >> 24 for shift in (24, 16, 8, 0)]
    numbers = torch.stack(parts, 1).reshape(-1, CHUNK).to(torch.float32)
    return (numbers * scale.view(-1, 1)).reshape(-1)
