"""Averages of gradients in FSDP2: ``set_custom_reduce_scatter(OrderedReduceScatter())`` of every sharded module.

Elements are added one by one, so sharded gradients are the rows of those that DistributedDataParallel averages with
`ordered_hook`, if forward and backward gave the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter

from pol.collectives.ordered_reduction import ordered_all_reduce, ordered_reduce_scatter
from pol.collectives.rank_order import Order
from pol.errors import UnsupportedError


class OrderedReduceScatter(ReduceScatter):
    """FSDP2's reduce-scatter with a defined order; a second group holds replicas of the shards, if there are any.

    replicas: the processes that hold the same shard (hybrid sharding); their means are averaged in a second stage, by
    `average_replicas`. order: of both stages. check: as in `ordered_all_reduce`.
    """

    def __init__(self, *, replicas: dist.ProcessGroup | None = None, order: Order = "ascending", check: bool = True):
        self.replicas, self.order, self.check = replicas, order, check
        self.sent = 0
        """Bytes that this process has sent."""

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Memory for a gradient."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
        async_op: bool = False,
    ) -> dist.Work | None:
        """The mean of this process's slice. Raises UnsupportedError: another operation, or a handle is asked for."""
        if op != dist.ReduceOp.AVG or async_op:
            raise UnsupportedError(
                "only means of float32 or bfloat16 have a defined order: no set_gradient_divide_factor, no "
                "set_force_sum_reduction_for_comms, no float16"
            )
        self.sent += ordered_reduce_scatter(
            output_tensor, input_tensor, "mean", group=group, order=self.order, check=self.check
        )
        return None

    def average_replicas(self, shard: Tensor) -> None:
        """The mean of a reduced shard over its replicas, in place: for ``set_all_reduce_hook``."""
        self.sent += ordered_all_reduce(shard, "mean", group=self.replicas, order=self.order, check=self.check)
