"""DiLoCo on some processes, recorded with its outer state; test_distributed_outer_state.py runs one per rank.

Workers take inner steps of AdamW apart. After each round they send the change of their weights, rounded to bfloat16
with error feedback. An outer SGD with Nesterov momentum moves the weights at the beginning of the round by the mean.
"""

import json
import os
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, TensorDataset

from pol import Recorder
from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.distributed import DistributedRecorder

STEPS, ROUND = 12, 4


class Residual:
    """What the rounding of earlier messages left, by parameter."""

    def __init__(self, parameters: list[Tensor]):
        self.values = [torch.zeros_like(p) for p in parameters]

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for own, value in zip(self.values, state["values"], strict=True):
            own.copy_(value)


class Rounds:
    """The number of rounds."""

    def __init__(self) -> None:
        self.done = 0

    def state_dict(self) -> dict[str, int]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.done = state["done"]


class Exchanged(TorchDispatchMode):
    """Counts the bytes of the tensors that this process gives to and gets from collectives."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            self.bytes += sum(leaf.nbytes for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))
        return func(*args, **(kwargs or {}))


def local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def outer_step(
    model: nn.Module, outer: torch.optim.Optimizer, residual: Residual, workers: dist.ProcessGroup | None
) -> None:
    """The end of a round; sums in the order of the workers."""
    begun = [tensor for group in outer.param_groups for tensor in group["params"]]
    for parameter, beginning, kept in zip(model.parameters(), begun, residual.values, strict=True):
        change = local(beginning) - local(parameter) + local(kept)
        sent = change.bfloat16().float()
        local(kept).copy_(change - sent)
        count = 1 if workers is None else dist.get_world_size(workers)
        every = [torch.empty_like(sent) for _ in range(count)]
        if workers is None:
            every = [sent]
        else:
            dist.all_gather(every, sent, group=workers)
        total = torch.zeros_like(sent)
        for other in every:
            total += other
        beginning.grad = torch.zeros_like(beginning)
        local(beginning.grad).copy_(total * (1 / count))
    outer.step()
    outer.zero_grad()
    for parameter, beginning in zip(model.parameters(), begun, strict=True):
        local(parameter).copy_(local(beginning))


def train(store: str, kind: str, kill: int | None, width: int) -> dict[str, Any]:
    """`apart`: a worker each process, all in one record. `sharded`: workers of two processes. `single`: one process."""
    several = kind != "single"
    rank = dist.get_rank() if several else 0
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 1))
    worker, workers, processes = (rank, dist.group.WORLD, None) if kind == "apart" else (0, None, None)
    if kind == "sharded":
        mesh = init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("worker", "shard"))
        fully_shard(model, mesh=mesh["shard"])
        worker, workers, processes = mesh.get_local_rank("worker"), mesh.get_group("worker"), mesh.get_group("shard")
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    outer = torch.optim.SGD([p.detach().clone() for p in model.parameters()], lr=0.7, momentum=0.9, nesterov=True)
    residual, rounds = Residual([p.detach() for p in model.parameters()]), Rounds()
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(worker))
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    options: dict[str, Any] = {"every": 3, "parts": {"outer": outer, "residual": residual, "rounds": rounds}}
    recorder: Recorder
    if not several:
        recorder = Recorder(store, model, inner, **options)
    elif kind == "apart":
        own = ("parameters", "optimizer", "residual")
        recorder = DistributedRecorder(store, model, inner, per_process=own, **options)
    else:
        recorder = DistributedRecorder(f"{store}/worker{worker}", model, inner, group=processes, **options)
    exchanged = 0
    for _ in range(recorder.resume(), 3):
        for inputs, targets in recorder.batches(loader):
            inner.zero_grad()
            ((model(inputs) - targets) ** 2).mean().backward()
            inner.step()
            if (recorder.steps + 1) % ROUND == 0:
                outer_step(model, outer, residual, workers)
                rounds.done += 1
            with Exchanged() as counted:
                recorder.step()
            exchanged = max(exchanged, counted.bytes)
            if recorder.steps == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            if recorder.steps == STEPS:
                record = recorder.close()
                roots = {str(c.step): c.root.hex() for c in record.checkpoints}
                return {"roots": roots, "exchanged": exchanged, "store": recorder.store.url}
    raise AssertionError("too few batches")


def refusals(store: str) -> None:
    """What each process has of its own is named rightly, isn't spread, and is the same after a resumption."""
    model = nn.Linear(4, 2)
    parts = {"residual": Residual([p.detach() for p in model.parameters()])}
    with pytest.raises(
        UnsupportedError, match="per_process names 'residuals', and a process can have of its own: buff"
    ):
        DistributedRecorder(store, model, parts=parts, per_process=["residuals"])
    DistributedRecorder(store, model, parts=parts, per_process=["residual"]).resume()
    with pytest.raises(
        ProtocolError, match="the checkpoint holds residual of each process: resume with the recorder's"
    ):
        DistributedRecorder(store, model, parts=parts).resume()
    with pytest.raises(
        ProtocolError, match="the checkpoint holds parameters once: resume with the recorder's per_proc"
    ):
        DistributedRecorder(store, model, parts=parts, per_process=["parameters", "residual"]).resume()
    spread = DistributedRecorder(f"{store}/spread", fully_shard(nn.Linear(4, 2)), per_process=["parameters"])
    with pytest.raises(UnsupportedError, match="of its own: give each worker of several processes a recorder of its"):
        spread.resume()


def main(folder: str, kind: str, kill: str, width: str) -> None:
    torch.set_num_threads(1)
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if kind != "single":
        meet = f"file://{folder}/meet-{kind}-{kill}"
        dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=count, timeout=timedelta(seconds=900))
    if kind == "refusals":
        refusals(f"file://{folder}/{kind}")
        found = {}
    else:
        found = train(f"file://{folder}/{kind}", kind, int(kill) or None, int(width))
    Path(folder, f"{kind}.{rank}.json").write_text(json.dumps(found))
    if kind != "single":
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
