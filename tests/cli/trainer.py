"""A small trainer, right as it stands; its argument names one thing that it does wrong."""

import copy
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pol import Recorder


class Model(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Dropout(0.2), nn.Linear(12, 1))
        self.fault = fault
        self.calls = 0
        self.register_buffer("counted", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.fault == "attribute"
        self.counted += 1
        count = self.calls if self.fault == "attribute" else self.counted
        scaled: Tensor = self.layers(x) * (1 + 1 / (1 + count))
        return scaled


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Draws from a generator that nothing can reach, as it lives in a frame."""

    def __init__(self, data: TensorDataset):
        self.data = data
        self.draws = self.drawn()

    def drawn(self) -> Iterator[Tensor]:
        source = torch.Generator().manual_seed(5)
        while True:
            yield torch.randn(8, generator=source)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x, y = self.data[index]
        return x + 0.1 * next(self.draws), y


class Gain:
    """A factor that grows; `restores` says whether it takes back its state. It gives nothing of `inner`."""

    def __init__(self, restores: bool) -> None:
        self.value, self.restores = 1.0, restores
        self.inner = {"decay": [torch.ones(1)]}

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.restores:
            self.value = state["value"]


def main(fault: str) -> None:
    torch.manual_seed(time.time_ns() if fault == "unseeded" else 0)
    if fault != "torch alone":
        random.seed(0)
        np.random.seed(0)
    model = Model(fault)
    teacher, average = copy.deepcopy(model), copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    noise = torch.Generator().manual_seed(time.time_ns() % 2**40 if fault == "time" else 3)
    gain = Gain(fault != "part")
    x = torch.randn(700 if fault == "long epoch" else 70, 8, generator=torch.Generator().manual_seed(1))
    plain = TensorDataset(x, x.sum(1, keepdim=True))
    data: Dataset[Any] = Noisy(plain) if fault == "data" else plain
    loader = DataLoader(data, batch_size=10, shuffle=True)
    parts = {"gain": gain} | ({} if fault == "teacher" else {"teacher": teacher})
    parts |= {} if fault == "average" else {"average": average}
    parts |= {} if fault in ("generator", "time") else {"noise": noise}
    recorder = Recorder(
        "memory://never-used",
        model,
        optimizer,
        every=2 if fault == "two steps" else 50,
        scheduler=None if fault == "scheduler" else schedule,
        parts=parts,
    )
    count = 0
    for _ in range(recorder.resume(), 5):
        drawn = recorder.batches(loader, uneven=fault == "two steps")
        for inputs, targets in loader if fault == "loader" else drawn:
            noisy = inputs + 0.1 * torch.randn(inputs.shape, generator=noise)
            with torch.no_grad():
                taught = teacher(inputs)
            found = model(noisy)
            loss = ((found - targets) ** 2).mean() + 0.1 * ((found - taught) ** 2).mean()
            (loss * gain.value * gain.inner["decay"][0] / (1 + count)).backward()
            if fault != "gradients" or recorder.steps % 2:
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()
            gain.value *= 1.01
            count += fault == "counter"
            gain.inner["decay"][0] *= 0.9 if fault == "attribute of a part" else 1
            if fault == "two steps":
                recorder.step()
            with torch.no_grad():
                for copied in (teacher, average):
                    for mine, its in zip(copied.parameters(), model.parameters(), strict=True):
                        mine.mul_(0.9).add_(its, alpha=0.1)
            recorder.step()
    recorder.close()


if __name__ == "__main__":
    main(sys.argv[1])
