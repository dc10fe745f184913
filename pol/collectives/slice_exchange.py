"""What the processes of a group send each other: slices of bytes, and the greatest of integers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from pol.errors import OperationalError, ProtocolError

_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
"""Torch 2.13 has renamed it, and warns of the old name."""

TAG = int.from_bytes(b"pol", "big")
"""Of messages between two processes, so that they are none of the program's own."""


class SliceExchange:
    """One call's exchanges over a process group, on the device of the tensors, without copies to the host.

    Every method is called by all processes, with tensors of the same size. Slice r of a tensor is process r's part.
    """

    def __init__(self, group: dist.ProcessGroup | None):
        self.group = group
        self.ranks = dist.get_world_size(group)
        self.rank = dist.get_rank(group)
        if self.rank < 0:
            raise ProtocolError("this process isn't in the group: call the collective on the group's processes only")
        self.sent = 0
        """Bytes that this process has sent; sums and maxima by the backend as a ring sends them."""

    def scatter(self, whole: Tensor) -> list[Tensor]:
        """This process's slice of every process's tensor. whole: contiguous, of a multiple of n elements."""
        received = torch.empty_like(whole)
        if whole.numel():
            with _of_peers():
                dist.all_to_all_single(_as_bytes(received), _as_bytes(whole), group=self.group)
            self.sent += whole.nbytes // self.ranks * (self.ranks - 1)
        return list(received.view(self.ranks, -1).unbind())

    def gather(self, part: Tensor, whole: Tensor) -> None:
        """Writes all processes' parts, in the order of their ranks, to a contiguous tensor."""
        if not part.numel():
            return
        with _of_peers():
            if part.device.type == "cpu":
                self._gather_from_each(_as_bytes(part), _as_bytes(whole).view(self.ranks, -1))
            else:
                _all_gather(_as_bytes(whole), _as_bytes(part), group=self.group)
        self.sent += part.nbytes * (self.ranks - 1)

    def _gather_from_each(self, part: Tensor, rows: Tensor) -> None:
        """Straight into place: gloo's own all-gather copies all of it once more, a third of its time."""
        rows[self.rank] = part
        others = [(self.rank + distance) % self.ranks for distance in range(1, self.ranks)]
        sends = [dist.P2POp(dist.isend, part, group=self.group, tag=TAG, group_peer=peer) for peer in others]
        receipts = [dist.P2POp(dist.irecv, rows[peer], group=self.group, tag=TAG, group_peer=peer) for peer in others]
        if others:
            for work in dist.batch_isend_irecv(sends + receipts):
                work.wait()

    def maximum(self, integers: Tensor) -> None:
        """The greatest value of any process, in place: the same in any order."""
        self._reduce(integers, dist.ReduceOp.MAX)

    def add(self, integers: Tensor) -> None:
        """The sum over all processes, in place: exact, so the same in any order."""
        self._reduce(integers, dist.ReduceOp.SUM)

    def _reduce(self, integers: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        if integers.numel():
            with _of_peers():
                dist.all_reduce(integers, operation, group=self.group)
            self.sent += 2 * integers.nbytes * (self.ranks - 1) // self.ranks


def _as_bytes(tensor: Tensor) -> Tensor:
    """The memory of a contiguous tensor: not every backend knows every type."""
    return tensor.view(-1).view(torch.uint8)


@contextmanager
def _of_peers() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise OperationalError(
            f"the exchange between processes failed ({reason}): see whether all of them are alive, then resume"
        ) from error
