"""One call that gives a model's gradient averages a defined order, whichever wrapper it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from pol.collectives.gradient_hooks import IntegerGradients, OrderedGradients, integer_hook, ordered_hook
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


GradientExchange = OrderedGradients | IntegerGradients | OrderedReduceScatter


def make_reproducible(
    model: nn.Module,
    exchange: Literal["ordered", "integer"] = "ordered",
    *,
    order: Order = "ascending",
    bits: int = 8,
    feedback: bool = False,
    replicas: dist.ProcessGroup | None = None,
    check: bool = True,
) -> GradientExchange:
    """Averages the model's gradients with defined bits from now on; returns what does it, which counts bytes sent.

    model: in DistributedDataParallel, or sharded by ``fully_shard`` on a mesh of one dimension. exchange: ordered sums
    of float32, or integers of ``bits`` bits (not for shards), with feedback of rounding errors or without. replicas:
    the processes that hold the same shard. All processes call it, before the first backward pass.

    Raises:
        UnsupportedError: a model without such a wrapper, or options that don't fit it.
    """
    if isinstance(model, DistributedDataParallel):
        if replicas is not None:
            raise UnsupportedError("replicas= is for sharded models: DistributedDataParallel averages over its group")
        group = model.process_group
        if exchange == "integer":
            integers = IntegerGradients(model.module, group, bits=bits, feedback=feedback, check=check)
            model.register_comm_hook(integers, integer_hook)
            return integers
        ordered = OrderedGradients(group, order=order, check=check)
        model.register_comm_hook(ordered, ordered_hook)
        return ordered
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not sharded:
        raise UnsupportedError("the model averages no gradients: wrap it in DistributedDataParallel, or fully_shard it")
    if exchange == "integer":
        raise UnsupportedError("integers have no definition for shards: exchange='ordered', or DistributedDataParallel")
    if any(isinstance(p, DTensor) and p.device_mesh.ndim > 1 for p in model.parameters()):
        raise UnsupportedError(
            "on a mesh of several dimensions torch makes sums of its own: fully_shard on the mesh of the shards alone, "
            "and give replicas=mesh.get_group(...) if there are replicas"
        )
    scatter = OrderedReduceScatter(replicas=replicas, order=order, check=check)
    for module in sharded:
        module.set_custom_reduce_scatter(scatter)
        if replicas is not None:
            module.set_all_reduce_hook(scatter.average_replicas)
    return scatter
