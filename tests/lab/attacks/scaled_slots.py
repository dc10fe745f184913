"""Pushes within the tolerance of a task with a noisy slot: with thresholds over a whole component, and with scales.

Each segment is trained, and its end is pushed as far as its threshold allows: the normalization towards where every
ReLU is dead, or the last bias towards one class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.attacks.attack_target import numbers, words_of
from lab.attacks.noisy_slots import Attention, Normalized, store_of, task_of
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import THRESHOLD_BITS, is_accepted, travelled
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Three
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.training.task.published_task import load
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile
from pol.verification.profile.slot_scales import scales_of, with_scales
from pol.verification.replay.canonical_replay import replay_end

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
