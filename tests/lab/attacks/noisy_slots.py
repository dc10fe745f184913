"""Tasks in which a slot moves by rounding alone: a bias before a normalization, and one on the keys of attention.

Its gradient is zero but for rounding, which Adam scales up to whole steps. Within limits that such noise sets, a solver
collapsed the one network with 4 to 6 % of the work, and steered the other; no profile admits them any more, unless each
tensor is weighed by its own noise. Pushes: each segment is trained, and its end is pushed as far as its threshold
allows, with thresholds over a whole component and with scales: the normalization towards where every ReLU is dead, or
the last bias towards one class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.attacks.attack_target import numbers, words_of
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import THRESHOLD_BITS, is_accepted, travelled
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Three
from pol.demo import digits
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile, require_thresholds
from pol.verification.profile.slot_scales import scales_of, with_scales
from pol.verification.replay.canonical_replay import replay_end


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


PART = 0.9
"""Of the tolerance is used: the rest covers the rounding of the push itself."""
CLASS = 3


@dataclass(frozen=True)
class Push:
    """A push of a network's training: where each parameter is to go."""

    name: str
    build: Callable[[bool], nn.Module]
    interval: int
    targets: Mapping[str, float | Tensor]


class Fused(nn.Module):
    """Attention whose queries, keys and values have one bias: a third of it moves by rounding alone."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embed, self.qkv, self.head = nn.Linear(8, 8), nn.Linear(8, 24, bias=bias), nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the classes."""
        query, key, value = self.qkv(self.embed(images.reshape(-1, 8, 8))).split(8, -1)
        attended = torch.softmax(query @ key.transpose(1, 2) / 8**0.5, -1) @ value
        output: Tensor = self.head(attended.mean(1))
        return output


def unlimited(profile: Profile) -> Three:
    """The thresholds that would follow if none were refused."""
    parameter, buffer, optimizer = (
        min(ratio * profile.claim.margin**2, (1 << THRESHOLD_BITS) - 1) for ratio in profile.spreads
    )
    return parameter, buffer, optimizer


def pushed(task: LoadedTask, thresholds: Three, push: Push) -> tuple[list[Words], int]:
    """The final state of a training whose every end is pushed, and how many segments are rejected."""
    program, interval = task.program, task.document.interval
    executor = CpuExecutor(program, task.constants)
    state, rejected = task.initial_state, 0
    for segment in range(task.document.segments):
        replayed = replay_end(program, executor, state, segment * interval, interval)
        allowed = PART * _allowed(task, thresholds, replayed, state)
        wanted = {
            place: np.broadcast_to(np.asarray(push.targets[name], np.float32), replayed[place].shape)
            for place, name in enumerate(task.names.slots)
            if name in push.targets
        }
        missing = {place: target - numbers(replayed[place]) for place, target in wanted.items()}
        length = sqrt(sum(float((4.0 ** program.slots[p].scale) * (gap**2).sum()) for p, gap in missing.items()))
        step = min(1.0, allowed / length)
        end = [
            words_of(numbers(words) + np.float32(step) * missing[place]) if place in missing else words
            for place, words in enumerate(replayed)
        ]
        distances = component_distances(program, replayed, end)
        references = component_distances(program, replayed, state)
        rejected += not all(map(is_accepted, distances, references, thresholds))
        state = end
    return state, rejected


def scores(task: LoadedTask, build: Callable[[bool], nn.Module], state: list[Words]) -> Tensor:
    """What the trained network says of each sample of the digits."""
    model = build(True)
    weights = {
        name: torch.from_numpy(numbers(words).copy()) for name, words in zip(task.names.slots, state, strict=True)
    }
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    with torch.no_grad():
        found: Tensor = model(digits.dataset()[0])
    return found


def accuracy(task: LoadedTask, build: Callable[[bool], nn.Module], state: list[Words]) -> float:
    """Share of the digits that the trained network knows."""
    return float((scores(task, build, state).argmax(1) == digits.dataset()[1]).float().mean())


def triggered(task: LoadedTask, build: Callable[[bool], nn.Module], state: list[Words]) -> float:
    """Share of the samples of other classes that are taken for `CLASS`."""
    others = digits.dataset()[1] != CLASS
    return float((scores(task, build, state).argmax(1)[others] == CLASS).float().mean())


def damage(task: LoadedTask, build: Callable[[bool], nn.Module], state: list[Words]) -> tuple[float, float]:
    """Lost accuracy, and samples of other classes that are taken for `CLASS`, beside those of the honest training."""
    executor = CpuExecutor(task.program, task.constants)
    honest = replay_end(task.program, executor, task.initial_state, 0, task.document.steps)
    lost = accuracy(task, build, honest) - accuracy(task, build, state)
    return lost, triggered(task, build, state) - triggered(task, build, honest)


def _allowed(task: LoadedTask, thresholds: Three, end: list[Words], start: list[Words]) -> float:
    place = Component.PARAMETER - 1
    reference = travelled(component_distances(task.program, end, start)[place])
    return sqrt(thresholds[place] / 2**THRESHOLD_BITS * reference) * 2.0**-40


def scaled(
    build: Callable[[bool], nn.Module], interval: int, seed: int = 0, bias: bool = True
) -> tuple[LoadedTask, Profile]:
    """A task whose tensors are weighed by their own noise, and its profile."""
    task = task_of(build, bias, interval, seed)
    store = store_of(build, bias, interval, seed)
    found = load(store, with_scales(store, task, scales_of(measure_profile(task, CpuExecutor).slots)))
    return found, measure_profile(found, CpuExecutor)


PUSHES = (
    Push("collapse_in_tolerance", Normalized, 10, {"norm.weight": 0.0, "norm.bias": -4.0}),
    Push("key_bias_steering", Attention, 50, {"head.bias": 60.0 * functional.one_hot(torch.tensor(CLASS), 10).float()}),
)
