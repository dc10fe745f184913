"""The tasks that the battery is run against: a perceptron and a small convolutional network on the digits."""

import uuid
from collections.abc import Callable, Mapping
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.attacks.attack_loop import with_weights
from lab.attacks.attack_target import Target
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.verification.profile.profiling import PROFILED, measure_profile

SEED = 1
HIDDEN = {"mlp": digits.HIDDEN, "wide": 512, "tuned": digits.HIDDEN}
"""Hidden units of the perceptrons. The wide one has a kink near in every batch. The tuned one starts from trained
weights, some of whose units are dead."""


class Convolutional(nn.Module):
    """Two convolutions with batch normalisation on the digits as 8 x 8 images.

    With an activation that has no kink: where a rounding decides about the branch of a ReLU, honest runs part by a
    thousandth of an update, and nothing can be told from them (docs/litepaper.md, "False rejects").
    Without biases in front of a normalisation: it cancels them, so their gradients are nothing but rounding, which Adam
    scales up to whole steps. Honest runs then part as far as they travel, and no profile exists.
    """

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, stride=2, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.output = nn.Linear(channels * 16, digits.CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Scores (batch, 10) of images (batch, 64)."""
        features = functional.gelu(self.first_norm(self.first(images.reshape(-1, 1, 8, 8))))
        features = functional.gelu(self.second_norm(self.second(features)))
        scores: Tensor = self.output(features.flatten(1))
        return scores


def build(model: str, seed: int = SEED) -> nn.Module:
    """A fresh model by name, initialized from a seed."""
    if model in HIDDEN:
        return digits.build_model(seed, HIDDEN[model])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Convolutional()


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW with torch's own settings but for the rate."""
    return torch.optim.AdamW(model.parameters(), lr=2e-3)


OPTIMIZERS: Mapping[str, Callable[[nn.Module], torch.optim.Optimizer]] = {"sgd": digits.build_optimizer, "adamw": adamw}
MODELS = ("mlp", "cnn")


@cache
def trained() -> Mapping[str, Tensor]:
    """The weights after a canonical training of the perceptron with AdamW."""
    found = target("mlp", "adamw", 400, 100)
    return {name: tensor.detach() for name, tensor in with_weights(found, found.honest[-1]).state_dict().items()}


def captured(model: str, optimizer: str, steps: int, seed: int = SEED) -> Capture:
    """The training step of a task; ``seed`` is that of the initial weights."""
    built = build(model, seed)
    if model == "tuned":
        built.load_state_dict(dict(trained()))
    return capture(
        built, digits.loss_function, OPTIMIZERS[optimizer](built), digits.dataset(), digits.order(SEED, steps)
    )


def target(model: str, optimizer: str, steps: int, interval: int, step: Capture | None = None) -> Target:
    """A task on the digits, published, loaded and profiled; ``step`` saves capturing it again."""
    store = Store(f"memory://target-{uuid.uuid4().hex}")
    step = step or captured(model, optimizer, steps)
    digest, _ = publish(store, step, steps=steps, interval=interval, model=model, optimizer=optimizer)
    task = load(store, digest)
    # Running statistics settle: late segments move them less, so that rounding counts for more. A profile of the first
    # segments alone would reject honest runs.
    has_buffers = any(slot.component is Component.BUFFER for slot in task.program.slots)
    profiled = max(PROFILED, task.document.segments // 2) if has_buffers else PROFILED
    return Target(
        name=f"{model} {optimizer}, {interval} steps a segment",
        task=task,
        build=lambda: build(model),
        optimize=OPTIMIZERS[optimizer],
        loss=digits.loss_function,
        thresholds=measure_profile(task, CpuExecutor, profiled).thresholds,
    )
