"""Sums and means over processes in a defined order of binary32 additions (docs/spec/collectives.md).

Slices go to their owners (all-to-all), each owner folds the processes' values in order and rounds the result, and all
gather the slices: as many bytes as a ring sends. The cut into slices changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pol.collectives.agreement import agree
from pol.collectives.flat_tensors import flatten, write_back
from pol.collectives.rank_order import Operation, Order, fold_ranks, scaled, settled
from pol.collectives.slice_exchange import SliceExchange
from pol.errors import ProtocolError


@torch.no_grad()
def ordered_all_reduce(
    tensors: Tensor | Sequence[Tensor],
    operation: Operation = "sum",
    *,
    group: dist.ProcessGroup | None = None,
    order: Order = "ascending",
    roster: Sequence[int] | None = None,
    check: bool = True,
) -> int:
    """The sum or mean over all processes, in place; returns the bytes that this process has sent.

    tensors: one, or several of one type that travel together; any shapes and strides. Elements of float16 and bfloat16
    are added in float32 and rounded once. order: ranks as they ascend, or pairs of pairs. roster: all ranks of the
    group, in the order in which to take them. check: compare tensors and options first (104 bytes to each process; on
    devices without a backend of the processor it waits for the device).

    Raises:
        ProtocolError: on all processes: they give different tensors or options, or options that don't exist.
        UnsupportedError: on all processes: another type of elements.
        OperationalError: the backend has failed.
    """
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    exchange = SliceExchange(group)
    agree(
        exchange, parts, collective="ordered_all_reduce", operation=operation, order=order, roster=roster, check=check
    )
    whole = flatten(parts, exchange.ranks)
    exchange.gather(_owned(exchange, whole, operation, order, roster), whole)
    write_back(whole, parts)
    return exchange.sent


@torch.no_grad()
def ordered_reduce_scatter(
    output: Tensor,
    tensor: Tensor,
    operation: Operation = "sum",
    *,
    group: dist.ProcessGroup | None = None,
    order: Order = "ascending",
    roster: Sequence[int] | None = None,
    check: bool = True,
) -> int:
    """This process's slice of the sum or mean, into ``output``; returns the bytes that this process has sent.

    tensor: of n times the elements of ``output`` on n processes; slice r is for rank r. Else as `ordered_all_reduce`.

    Raises:
        ProtocolError, UnsupportedError, OperationalError: as `ordered_all_reduce`.
    """
    exchange = SliceExchange(group)
    agree(
        exchange,
        [tensor, output],
        collective="ordered_reduce_scatter",
        operation=operation,
        order=order,
        roster=roster,
        check=check,
    )
    if tensor.numel() != exchange.ranks * output.numel():
        raise ProtocolError(
            f"a tensor of {tensor.numel()} elements isn't {exchange.ranks} slices of {output.numel()}: pad it"
        )
    owned = _owned(exchange, flatten([tensor], exchange.ranks), operation, order, roster)
    output.copy_(owned.view(output.shape))
    return exchange.sent


def _owned(
    exchange: SliceExchange, whole: Tensor, operation: Operation, order: Order, roster: Sequence[int] | None
) -> Tensor:
    """The result of this process's slice, which this process answers for."""
    rows = exchange.scatter(whole)
    total = fold_ranks([rows[rank] for rank in roster] if roster else rows, order)
    return settled(scaled(total, operation, exchange.ranks), whole.dtype)
