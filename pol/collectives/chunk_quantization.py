"""Integers in place of floats: chunks that share a power of two (docs/spec/collectives.md, "Integers").

The words of a chunk are q = round_half_even(x / 2^e), of ``bits`` bits with sign. Sums of them are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pol.collectives.rank_order import Operation, scaled

CHUNK = 1024
"""Elements that share an exponent; a tensor's last chunk may be shorter."""
INFINITY = 0x7F800000


def largest(bits: int) -> int:
    """The greatest integer of a chunk: 2^(bits-1) - 1; the least one is its negative."""
    return (1 << bits - 1) - 1


def magnitudes(chunks: Tensor) -> Tensor:
    """By chunk the pattern of its greatest absolute value, as int32; patterns are ordered as values are, NaN last.

    chunks: float32 [number, CHUNK].
    """
    found = chunks.new_empty(len(chunks), dtype=torch.int32)
    for rows in _blocks(chunks):
        torch.amax(chunks[rows].view(torch.int32) & 0x7FFFFFFF, 1, out=found[rows])
    return found


@dataclass(frozen=True)
class ChunkScales:
    """The powers of two of all chunks, which all processes agree on: one column each, to multiply rows by."""

    bits: int
    quantum: Tensor
    """2^e, float32 [number, 1]; e is from -126 to 126, so no factor is subnormal or infinite."""
    inverse: Tensor
    """2^-e."""
    poisoned: Tensor
    """Whether a process has an infinity or NaN in the chunk."""

    @staticmethod
    def of(magnitudes: Tensor, bits: int) -> ChunkScales:
        """The scales for the greatest magnitudes m of any process: m < 2^(e + bits - 1), e as small as that allows."""
        exponents = ((magnitudes >> 23) - (125 + bits)).clamp_(-126, 126).unsqueeze_(1)
        return ChunkScales(
            bits,
            ((exponents + 127) << 23).view(torch.float32),
            ((127 - exponents) << 23).view(torch.float32),
            (magnitudes >= INFINITY).unsqueeze_(1),
        )

    def quantize(self, chunks: Tensor, kind: torch.dtype) -> Tensor:
        """The integers of the chunks in a type that holds them; zeros where the chunk is poisoned."""
        limit = largest(self.bits)
        found = torch.empty_like(chunks, dtype=kind)
        for rows in _blocks(chunks):
            found[rows] = self._fill((chunks[rows] * self.inverse[rows]).round_().clamp_(-limit, limit), rows, 0)
        return found

    def restore(self, sums: Tensor, operation: Operation, ranks: int, result: Tensor) -> None:
        """Float32 of the integers' sum: rounded once to float32, times 1/n for a mean, times 2^e; NaN if poisoned."""
        for rows in _blocks(sums):
            values = scaled(sums[rows].to(torch.float32), operation, ranks)
            torch.mul(values, self.quantum[rows], out=result[rows])
            self._fill(result[rows], rows, math.nan)

    def rest(self, chunks: Tensor, integers: Tensor) -> Tensor:
        """What the integers leave out, exact: x - q 2^e; zeros where the chunk is poisoned."""
        return self._fill(chunks - integers * self.quantum, slice(None), 0)

    def _fill(self, values: Tensor, rows: slice, value: float) -> Tensor:
        return values.masked_fill_(self.poisoned[rows], value) if self._has_poison else values

    @cached_property
    def _has_poison(self) -> bool:
        """Whether to look at `poisoned`; true on devices for which it would be waited."""
        return self.poisoned.device.type != "cpu" or bool(self.poisoned.any())


def _blocks(chunks: Tensor) -> Iterator[slice]:
    """Rows that a processor's cache holds through several operations; on other devices all of them."""
    count = 64 if chunks.device.type == "cpu" else max(len(chunks), 1)
    return (slice(begin, begin + count) for begin in range(0, len(chunks), count))


@dataclass(frozen=True)
class ChunkLayout:
    """How tensors are cut into chunks: each on its own, so what travels together changes no bit."""

    sizes: Sequence[int]

    def _rows(self, size: int) -> int:
        return -(-size // CHUNK)

    def chunks(self, tensors: Sequence[Tensor]) -> Tensor:
        """The elements as float32 [number, CHUNK], zeros where a last chunk is shorter."""
        return self._spread([tensor.reshape(-1).float() for tensor in tensors])

    def spread(self, flat: Tensor) -> Tensor:
        """Elements in a row as chunks."""
        return self._spread(torch.split(flat[: sum(self.sizes)], list(self.sizes)))

    def pieces(self, chunks: Tensor) -> list[Tensor]:
        """By tensor its elements, without the zeros."""
        parts = torch.split(chunks, [self._rows(size) for size in self.sizes])
        return [part.reshape(-1)[:size] for part, size in zip(parts, self.sizes, strict=True)]

    def _spread(self, parts: Sequence[Tensor]) -> Tensor:
        if len(parts) == 1 and self.sizes[0] % CHUNK == 0:
            return parts[0].contiguous().view(-1, CHUNK)
        chunks = parts[0].new_zeros(sum(map(self._rows, self.sizes)), CHUNK)
        for piece, part in zip(self.pieces(chunks), parts, strict=True):
            piece.copy_(part)  # a view
        return chunks
