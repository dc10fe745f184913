"""One call that gives a model's gradient averages a defined order, whichever wrapper it has."""

from __future__ import annotations

from typing import Literal

import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from pol.collectives.gradient_hooks import IntegerGradients, OrderedGradients, integer_hook, ordered_hook
from pol.collectives.rank_order import Order
from pol.collectives.sharded_gradients import OrderedReduceScatter
from pol.errors import UnsupportedError

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
