"""Trainings on several processes whose gradients are averaged with a defined order."""

from typing import Any

import pytest
import torch
import torch.distributed as dist
from numpy_collectives import ordered
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from pol.collectives import IntegerGradients, integer_hook, make_reproducible
from pol.collectives.rank_order import Order
from pol.errors import ProtocolError, UnsupportedError

STEPS = 4
RATE = 2.0**-4
"""A power of two: products with it are exact, so a fused update gives the same bits as one that isn't."""


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 65), nn.ReLU(), nn.Linear(65, 33), nn.Tanh(), nn.Linear(33, 3))


def loss(model: nn.Module, rank: int, step: int) -> Tensor:
    batch = torch.randn(5, 7, generator=torch.Generator().manual_seed(100 * rank + step))
    return (model(batch) ** 2).mean()


def whole(tensor: Tensor) -> bytes:
    tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return tensor.detach().numpy().tobytes()


def train(model: nn.Module) -> list[bytes]:
    """Gradients of all steps, and the parameters at the end."""
    found = []
    parameters = list(model.parameters())
    for step in range(STEPS):
        loss(model, dist.get_rank(), step).backward()
        found += [whole(p.grad) for p in parameters if p.grad is not None]
        with torch.no_grad():
            for parameter in parameters:
                assert parameter.grad is not None
                parameter.sub_(RATE * parameter.grad)
                parameter.grad = None
    return found + [whole(parameter) for parameter in parameters]


def alone(order: str) -> list[bytes]:
    """The same training without a group: every rank's gradient, one after the other, folded in NumPy."""
    model = network()
    parameters = list(model.parameters())
    found = []
    for step in range(STEPS):
        gradients = []
        for rank in range(dist.get_world_size()):
            loss(model, rank, step).backward()
            gradients.append([parameter.grad for parameter in parameters])
            for parameter in parameters:
                parameter.grad = None
        with torch.no_grad():
            for parameter, *terms in zip(parameters, *gradients, strict=True):
                mean = torch.from_numpy(ordered([term.numpy() for term in terms], "mean", order))
                found.append(whole(mean))
                parameter.sub_(RATE * mean)
    return found + [whole(parameter) for parameter in parameters]


def replicas(order: Order) -> dict[str, list[bytes]]:
    """By arrangement what the training gives; bucket sizes in MB."""
    found = {"alone": alone(order)}
    for megabytes in (1e-4, 1e-2, 25):
        model = DistributedDataParallel(network(), bucket_cap_mb=megabytes)
        exchange = make_reproducible(model, order=order)
        found[f"buckets of {megabytes} MB"] = train(model)
        assert exchange.sent > 0
    views = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    make_reproducible(views, order=order)
    found["views"] = train(views)
    return found


def sharded(model: nn.Sequential, **options: Any) -> nn.Module:
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


def shards(order: Order) -> list[bytes]:
    model = sharded(network())
    make_reproducible(model, order=order)
    return train(model)


def hybrid() -> list[bytes]:
    """Two replicas of two shards; in the order of a tree that is a tree over all four."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    model = sharded(network(), mesh=mesh["shards"])
    make_reproducible(model, order="tree", replicas=mesh.get_group("replicas"))
    return train(model)


def integer_training(feedback: bool) -> dict[str, list[bytes]]:
    """By arrangement what the training gives."""
    found = {}
    for megabytes in (1e-4, 25):
        model = DistributedDataParallel(network(), bucket_cap_mb=megabytes)
        make_reproducible(model, "integer", feedback=feedback)
        found[f"buckets of {megabytes} MB"] = train(model)
    model = DistributedDataParallel(network())
    state = IntegerGradients(model.module, feedback=feedback, transport="all_reduce")
    model.register_comm_hook(state, integer_hook)
    found["sums by the backend"] = train(model)
    rests = state.state_dict()
    assert sorted(rests) == (sorted(name for name, _ in model.module.named_parameters()) if feedback else [])
    if feedback:
        assert any(rest.any() for rest in rests.values())
        other = IntegerGradients(model.module, feedback=True)
        other.load_state_dict(rests)
        assert all(torch.equal(rests[name], rest) for name, rest in other.state_dict().items())
    return found


def refused() -> None:
    """What has no definition is said before the training."""
    with pytest.raises(UnsupportedError, match="wrap it in DistributedDataParallel"):
        make_reproducible(nn.Linear(2, 2))
    replicated = DistributedDataParallel(network())
    with pytest.raises(UnsupportedError, match="replicas= is for sharded models"):
        make_reproducible(replicated, replicas=dist.group.WORLD)
    with pytest.raises(UnsupportedError, match="integers have no definition for shards"):
        make_reproducible(sharded(network()), "integer")
    with pytest.raises(UnsupportedError, match="fully_shard on the mesh of the shards"):
        make_reproducible(sharded(network(), mesh=init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))))
    scaled = sharded(network())
    make_reproducible(scaled)
    for module in scaled.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(3.0)
    with pytest.raises(UnsupportedError, match="no set_gradient_divide_factor"):
        loss(scaled, 0, 0).backward()
    integers = IntegerGradients(network())
    with pytest.raises(ProtocolError, match="set feedback=True"):
        integers.load_state_dict({"0.weight": torch.zeros(65, 7)})
    with pytest.raises(ProtocolError, match=r"the rest of 0\.weight fits no parameter"):
        IntegerGradients(network(), feedback=True).load_state_dict({"0.weight": torch.zeros(7)})


def disagreeing() -> str:
    """One process has asked for another order."""
    model = DistributedDataParallel(network())
    make_reproducible(model, order="tree" if dist.get_rank() == 1 else "ascending")
    try:
        loss(model, 0, 0).backward()
    except Exception as error:  # noqa: BLE001  # torch chooses its class; the test looks at the message
        return str(error)
    return "nothing"
