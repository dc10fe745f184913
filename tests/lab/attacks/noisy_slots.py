"""Tasks in which a slot moves by rounding alone: a bias before a normalization, and one on the keys of attention.

Its gradient is zero but for rounding, which Adam scales up to whole steps. Within limits that such noise sets, a solver
collapsed the one network with 4 to 6 % of the work, and steered the other; no profile admits them any more, unless each
tensor is weighed by its own noise (`scaled_slots`).
"""

from __future__ import annotations

from collections.abc import Callable

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
    """A convolution, each of whose channels is normalized by itself."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=bias)
        self.norm = nn.GroupNorm(4, 4)
        self.head = nn.Linear(4 * 64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the classes."""
        found = functional.relu(self.norm(self.conv(images.reshape(-1, 1, 8, 8))))
        output: Tensor = self.head(found.flatten(1))
        return output


class Attention(nn.Module):
    """The rows of an image attend to each other."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embed, self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.key = nn.Linear(8, 8, bias=bias)
        self.head = nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the classes."""
        rows = self.embed(images.reshape(-1, 8, 8))
        scores = self.query(rows) @ self.key(rows).transpose(1, 2) / 8**0.5
        output: Tensor = self.head((torch.softmax(scores, -1) @ self.value(rows)).mean(1))
        return output


def task_of(build: Callable[[bool], nn.Module], bias: bool, interval: int, seed: int = 0) -> LoadedTask:
    """Four segments of the network's training on the digits, with AdamW."""
    torch.manual_seed(seed)
    model = build(bias)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    order = digits.order(seed + 1, 4 * interval, 16)
    step = capture(model, functional.cross_entropy, optimizer, digits.dataset(), order)
    store = store_of(build, bias, interval, seed)
    return load(store, publish(store, step, steps=4 * interval, interval=interval)[0])


def store_of(build: Callable[[bool], nn.Module], bias: bool, interval: int, seed: int) -> Store:
    """Where the task lies."""
    return Store(f"memory://noisy-{build.__name__}-{bias}-{interval}-{seed}")


def is_admitted(build: Callable[[bool], nn.Module], interval: int, seed: int) -> bool:
    """Whether the network with the noisy bias gets a profile, so that a solver could hide in its thresholds."""
    task = task_of(build, True, interval, seed)
    try:
        require_thresholds(measure_profile(task, CpuExecutor))
    except UnsupportedError:
        return False
    return True
