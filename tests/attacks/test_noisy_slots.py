"""Tasks in which a slot moves by rounding alone: a cheat would hide in its noise, so no profile admits them.

A bias before a normalization, and one on the keys of attention, have a gradient of zero but for rounding, which Adam
scales up to whole steps. With limits that such noise sets, a solver could collapse a network, or steer it, unseen.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pol.demo import digits
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profiling import measure_profile, require_thresholds


class Normalized(nn.Module):
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=bias)
        self.norm = nn.GroupNorm(4, 4)
        self.head = nn.Linear(4 * 64, 10)

    def forward(self, images: Tensor) -> Tensor:
        found = functional.relu(self.norm(self.conv(images.reshape(-1, 1, 8, 8))))
        output: Tensor = self.head(found.flatten(1))
        return output


class Attention(nn.Module):
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embed, self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.key = nn.Linear(8, 8, bias=bias)
        self.head = nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.embed(images.reshape(-1, 8, 8))
        scores = self.query(rows) @ self.key(rows).transpose(1, 2) / 8**0.5
        output: Tensor = self.head((torch.softmax(scores, -1) @ self.value(rows)).mean(1))
        return output


def task_of(build: Callable[[bool], nn.Module], bias: bool, interval: int) -> LoadedTask:
    torch.manual_seed(0)
    model = build(bias)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    order = digits.order(1, 4 * interval, 16)
    step = capture(model, functional.cross_entropy, optimizer, digits.dataset(), order)
    store = Store(f"memory://noisy-{build.__name__}-{bias}-{interval}")
    return load(store, publish(store, step, steps=4 * interval, interval=interval)[0])


@pytest.mark.parametrize(
    ("build", "interval", "noisy"),
    [(Normalized, 10, "conv.bias"), (Attention, 10, "key.bias"), (Attention, 50, "key.bias")],
)
def test_the_noisy_slot_is_named_and_the_task_refused(
    build: Callable[[bool], nn.Module], interval: int, noisy: str
) -> None:
    task = task_of(build, True, interval)
    found = measure_profile(task, CpuExecutor)
    with pytest.raises(UnsupportedError, match=rf"Use exact mode.* Of the parameter state it is {noisy} \(100%\)"):
        require_thresholds(task, CpuExecutor, found)


@pytest.mark.parametrize(("build", "interval"), [(Normalized, 10), (Attention, 10)])
def test_without_it_the_limits_are_those_of_rounding(build: Callable[[bool], nn.Module], interval: int) -> None:
    task = task_of(build, False, interval)
    found = measure_profile(task, CpuExecutor)
    require_thresholds(task, CpuExecutor, found)
    assert max(found.thresholds) < (1 << 64) * 1e-4**2
