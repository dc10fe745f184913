"""Relative errors for operands: drawn once, then read from a drawn offset, since drawing costs more than a product."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

COUNT = 1_048_583
"""How many numbers are drawn: a prime, so that the rows of a matrix get different ones."""


class DrawnErrors:
    """Uniform numbers from -1 to 1, the same for the same seed and the same sequence of calls."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self._draws, state = _drawn(seed, dtype)
        self._generator = torch.Generator()
        self._generator.set_state(state)

    def applied(self, tensor: Tensor, size: float) -> Tensor:
        """A tensor of floats whose elements have relative errors of at most `size`."""
        moved = tensor.to(self._draws.dtype, memory_format=torch.contiguous_format, copy=True)
        for part, draws in self._parts(moved.view(-1)):
            part.addcmul_(part, draws, value=size)
        return moved.to(tensor.dtype)

    def _parts(self, flat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        begin = int(torch.randint(COUNT, (), generator=self._generator))
        done = 0
        while done < len(flat):
            count = min(COUNT - begin, len(flat) - done)
            yield flat[done : done + count], self._draws[begin : begin + count]
            done, begin = done + count, 0


@lru_cache(maxsize=2)  # a self-check asks for the same ones again and again
def _drawn(seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The numbers, and the state of the generator behind them."""
    generator = torch.Generator().manual_seed(seed)
    draws = torch.empty(COUNT, dtype=dtype).uniform_(-1.0, 1.0, generator=generator)
    return draws, generator.get_state()
