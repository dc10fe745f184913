"""Sums and means over processes through integers: exact in any order, so the same bits by any algorithm and backend.

Chunks of elements share a power of two, which the processes agree on by the greatest magnitude of any of them; elements
become integers of a few bits, whose sums fit 32 bits (docs/spec/collectives.md, "Integers").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor

from pol.collectives.agreement import agree
from pol.collectives.chunk_quantization import ChunkLayout, ChunkScales, largest, magnitudes
from pol.collectives.flat_tensors import flatten
from pol.collectives.rank_order import Operation, settled
from pol.collectives.slice_exchange import SliceExchange

Transport = Literal["slices", "all_reduce"]


@torch.no_grad()
def integer_all_reduce(
    tensors: Tensor | Sequence[Tensor],
    operation: Operation = "mean",
    *,
    bits: int = 8,
    group: dist.ProcessGroup | None = None,
    residuals: Tensor | Sequence[Tensor] | None = None,
    transport: Transport = "slices",
    check: bool = True,
) -> int:
    """The sum or mean of the tensors as integers of ``bits`` bits, in place; returns the bytes that were sent.

    tensors: one, or several of one type; each is cut into chunks of its own. A chunk in which a process has an infinity
    or NaN becomes NaN on all. residuals: float32 of the same shapes, zeros at first; they are added before the
    rounding, and hold what it left out afterwards (error feedback), zeros where a chunk is NaN. transport: slices of
    the narrowest integers, which a process adds and all gather; or the backend's own sum of int32. Both give the same
    bits. check: as in `ordered_all_reduce`.

    Raises:
        ProtocolError: on all processes: they give different tensors or options, options that don't exist, sums that may
            not fit 32 bits, or residuals that don't fit the tensors.
        UnsupportedError: on all processes: another type of elements.
        OperationalError: the backend has failed.
    """
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    rests = [residuals] if isinstance(residuals, Tensor) else list(residuals or ())
    exchange = SliceExchange(group)
    agree(
        exchange,
        parts,
        collective="integer_all_reduce",
        operation=operation,
        bits=bits,
        transport=transport,
        residuals=rests,
        check=check,
    )
    layout = ChunkLayout([part.numel() for part in parts])
    chunks = layout.chunks(parts)
    if rests:
        chunks = chunks + layout.chunks(rests)
    greatest = magnitudes(chunks)
    exchange.maximum(greatest)
    scales = ChunkScales.of(greatest, bits)
    limit = largest(bits)
    integers = scales.quantize(chunks, narrowest(limit) if transport == "slices" else torch.int32)
    if rests:
        for rest, left in zip(rests, layout.pieces(scales.rest(chunks, integers)), strict=True):
            rest.copy_(left.view(rest.shape))
    if transport == "slices":
        sums = _added(exchange, flatten(layout.pieces(integers), exchange.ranks), narrowest(limit * exchange.ranks))
    else:
        sums = flatten(layout.pieces(integers), 1)
        exchange.add(sums)
    scales.restore(layout.spread(sums), operation, exchange.ranks, chunks)
    for part, piece in zip(parts, layout.pieces(chunks), strict=True):
        if part.data_ptr() != piece.data_ptr() or not part.is_contiguous():
            part.copy_(settled(piece, part.dtype).view(part.shape))
    return exchange.sent


def _added(exchange: SliceExchange, integers: Tensor, kind: torch.dtype) -> Tensor:
    """Sums of all processes' integers, in a type that holds them: each process adds a slice, and all gather."""
    first, *others = exchange.scatter(integers)
    total = first.to(kind)
    for row in others:
        total += row
    sums = total.new_empty(len(integers))
    exchange.gather(total, sums)
    return sums


def narrowest(limit: int) -> torch.dtype:
    """The narrowest type of integers that holds all from -limit to limit."""
    return next(kind for kind in (torch.int8, torch.int16, torch.int32) if limit <= torch.iinfo(kind).max)
