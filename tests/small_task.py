"""A task small enough to be verified whole in a test: its store in a folder, an honest training, a profile."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from pol.demo.cheating_parties import SkippingExecutor
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, capture
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import StepExecutor, environment, to_tensor, to_words, train
from pol.verification.profile.profiling import measure_profile

STEPS, INTERVAL = 60, 3
SKIPPED = 7 * INTERVAL + 1
"""A step of segment 7."""


def data() -> tuple[Tensor, Tensor, Tensor]:
    """Samples, labels and order."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 6, generator=generator)
    return x, (x.sum(1) > 0).long(), torch.randint(0, 40, (STEPS, 8), generator=generator)


def build_model() -> nn.Module:
    """A perceptron, always the same."""
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """What it is trained with."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)


@cache
def captured() -> Capture:
    """A training step of it."""
    x, y, order = data()
    model = build_model()
    return capture(model, nn.functional.cross_entropy, build_optimizer(model), (x, y), order)


def published(folder: Path) -> tuple[Store, LoadedTask]:
    """A task of 20 segments in a store in ``folder``."""
    store = Store(f"file://{folder}")
    digest, _ = publish(store, captured(), steps=STEPS, interval=INTERVAL, model="MLP 6-8-2", optimizer="SGD")
    return store, load(store, digest)


def solve(store: Store, task: LoadedTask, skipped: frozenset[int] = frozenset()) -> str:
    """The digest of a native training's learning proof, with some steps left out."""
    return solve_with(store, task, SkippingExecutor(NativeExecutor(task.aten), skipped))


def solve_with(store: Store, task: LoadedTask, executor: StepExecutor) -> str:
    """The same by any executor."""
    recorder = TaskRecorder(store, task)
    train(task, executor, recorder)
    return recorder.publish(environment())[0]


@dataclass(frozen=True)
class Examined:
    """A store with the task, an honest training, one that leaves out `SKIPPED`, and a profile."""

    folder: Path
    store: Store
    task: LoadedTask
    honest: str
    skipping: str
    profile: str


def examined(folder: Path) -> Examined:
    """All of it in a folder."""
    store, task = published(folder)
    trainings = (solve(store, task, frozenset(skipped)) for skipped in ((), (SKIPPED,)))
    profile = store.put(measure_profile(task, CpuExecutor, 3, 4).encode())
    return Examined(folder, store, task, *trainings, profile)


class Canonical:
    """A solver that trains on the canonical kernels."""

    def __init__(self, task: LoadedTask):
        self._slots = task.aten.slots
        self._executor = CpuExecutor(task.program, task.constants)

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], dict[str, Tensor]]:
        """One step."""
        words = [to_words(slot.type, tensor) for slot, tensor in zip(self._slots, state, strict=True)]
        after, _ = self._executor.advance(words, step)
        return [to_tensor(slot.type, word) for slot, word in zip(self._slots, after, strict=True)], {}
