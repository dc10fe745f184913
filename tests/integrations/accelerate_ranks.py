"""A loop over objects that an Accelerator has prepared, on several processes; its arguments: how, and the store."""

import os
import random
import sys

import numpy as np
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pol.integrations.accelerate import AcceleratedRecorder


class Data(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """70 points; each time one is read it is moved at random, as augmentation does."""

    def __init__(self) -> None:
        self.x = torch.randn(70, 8, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.01 * torch.randn(8), self.x[index].sum()


def main(kind: str, store: str) -> None:
    """On two processes, 7 batches of 5 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    torch.set_num_threads(1)
    sharded = FullyShardedDataParallelPlugin(fsdp_version=2) if kind == "fsdp2" else None
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, fsdp_plugin=sharded)
    random.seed(0)
    np.random.seed(accelerator.process_index)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 33), nn.Dropout(0.2), nn.Linear(33, 1))
    torch.manual_seed(100 + accelerator.process_index)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    loader = DataLoader(Data(), batch_size=5, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    recorder = AcceleratedRecorder(store, accelerator, model, optimizer, every=3, scheduler=scheduler)
    for _ in range(recorder.resume(), 4):
        for x, y in recorder.batches(loader):
            with accelerator.accumulate(model):
                accelerator.backward(((model(x).squeeze(1) - y) ** 2).mean())
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            recorder.step()
    print([checkpoint.step for checkpoint in recorder.close().checkpoints], flush=True)
    os._exit(0)  # torch may wait for ever when it frees sharded tensors and gloo's threads at the end of a process


if __name__ == "__main__":
    main(*sys.argv[1:])
