"""A trainer of several processes that torchrun starts; its arguments: whose recorders, and one thing that is wrong."""

import random
import sys
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from pol import Recorder
from pol.integrations.distributed import DistributedRecorder


class Residual:
    """What this process hasn't sent yet."""

    def __init__(self) -> None:
        self.value = torch.zeros(4)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"].clone()


def main(kind: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    is_last = rank == dist.get_world_size() - 1
    random.seed(rank)
    np.random.seed(rank)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 12), nn.Dropout(0.2), nn.Linear(12, 1)))
    torch.manual_seed(100 + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    noise, residual = torch.Generator().manual_seed(rank), Residual()
    data = TensorDataset(x := torch.randn(80, 8, generator=torch.Generator().manual_seed(1)), x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    parts: dict[str, Any] = {} if fault == "generator" and is_last else {"noise": noise}
    if fault.startswith("residual"):
        parts["residual"] = residual
    options: dict[str, Any] = {"every": 5, "parts": parts}
    if kind == "own":
        # The last process joins with a schedule that begins anew.
        options["scheduler"] = None if fault == "schedule" and is_last else schedule
        recorder = Recorder(f"memory://{rank}", model.module, optimizer, **options)
    elif kind == "first" and rank:
        return
    elif kind == "first":
        recorder = Recorder("memory://first", model.module, optimizer, **options)
    else:
        own = ["residual"] if fault == "residual of each" else []
        recorder = DistributedRecorder("memory://all", model, optimizer, scheduler=schedule, per_process=own, **options)
    begin = recorder.resume()
    if kind == "together" and fault == "schedule" and is_last and recorder.steps:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
    for epoch in range(begin, 3):
        for inputs, targets in recorder.batches(loader):
            noisy = inputs + 0.1 * torch.randn(inputs.shape, generator=noise)
            loss = ((model(noisy) - targets) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            if fault.startswith("residual"):
                residual.value += 0.1 * (rank + 1) * loss.detach()
                dist.all_reduce(everything := residual.value.sum())
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    parameter.grad += 1e-3 * everything
            optimizer.step()
            schedule.step()
            recorder.step()
        if fault == "apart" and is_last and epoch == 0:
            with torch.no_grad():
                next(model.parameters()).add_(1e-3)
    recorder.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
