"""Ballast: a submitter adds a parameter that goes far for nothing, and a solver hides in the length of its way.

Limits are relative to the way of a whole component. A parameter with a constant gradient lengthens it as the submitter
likes, so that the rest may stay where it is, or go where the solver wants: the proof says that it was trained.
"""

import uuid
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from lab.attacks.attack_target import State, Target, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.pushes import Vector, added, difference, distance, harm, length, noise
from lab.attacks.verification_outcome import mount
from lab.attacks.within_tolerance import PART
from pol.claims.acceptance_rule import relative_limit
from pol.demo import digits
from pol.errors import UnsupportedError
from pol.graph.capture import capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profiling import measure_profile, require_thresholds
from pol.verification.profile.slot_scales import scales_of, with_scales

SEED = 1
ELEMENTS = 256
RATE = 2.0**-4
PULL = 2.0**17
"""The gradient of the ballast. A power of two, so that its way is exact on every machine: a profile sees no noise."""
NAME = "ballast"
LATE = 63
"""A pixel that few samples have. They come late, and pull so much more: they alone move late ballast."""
LATE_PULL = 2.0**22
STILL = 2
"""Segments in which late ballast lies still: as many as are profiled."""


class Weighed(nn.Module):
    """The perceptron on the digits, with a parameter that does nothing."""

    def __init__(self, late: bool = False) -> None:
        super().__init__()
        self.hidden = nn.Linear(digits.PIXELS, digits.HIDDEN)
        self.output = nn.Linear(digits.HIDDEN, digits.CLASSES)
        self.ballast = nn.Parameter(torch.zeros(ELEMENTS))
        self.late = late

    def forward(self, images: Tensor) -> Tensor:
        """Scores (batch, 10) of images (batch, 64), and beside them what pulls at the ballast."""
        scores = self.output(torch.relu(self.hidden(images)))
        pull = LATE_PULL * images[:, LATE : LATE + 1] if self.late else PULL * torch.ones(len(images), 1)
        return torch.cat((scores, self.ballast.sum() * pull), 1)


def build(late: bool = False) -> Weighed:
    """A fresh network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return Weighed(late)


def loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the scores; the ballast is pulled down for ever."""
    return nn.functional.cross_entropy(outputs[:, : digits.CLASSES], labels) + outputs[:, digits.CLASSES].mean()


def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Plain gradient descent: it keeps nothing that would show a constant gradient as a constant."""
    return torch.optim.SGD(model.parameters(), lr=RATE)


def order(steps: int, interval: int, late: bool) -> Tensor:
    """The samples of each step. Those that pull at late ballast change places with others of later steps."""
    found = digits.order(SEED, steps)
    if late:
        pulls = digits.dataset()[0][:, LATE] > 0
        flat, still = found.flatten(), STILL * interval * found.shape[1]
        early = pulls[flat[:still]].nonzero().flatten()
        free = still + (~pulls[flat[still:]]).nonzero().flatten()[: len(early)]
        flat[early], flat[free] = flat[free].clone(), flat[early].clone()
        found = flat.reshape(found.shape)
    return found


def ballast_task(steps: int, interval: int, weighed: bool = False, late: bool = False) -> LoadedTask:
    """The training of the network with its ballast, as a submitter publishes it.

    ``weighed``: each tensor counts by its own noise.
    """
    model = build(late)
    step = capture(model, loss, optimizer(model), digits.dataset(), order(steps, interval, late))
    store = Store(f"memory://ballast-{uuid.uuid4().hex}")
    task = load(store, publish(store, step, steps=steps, interval=interval)[0])
    return load(store, with_scales(store, task, scales_of(measure_profile(task).slots))) if weighed else task


def ballast_target(steps: int, interval: int, weighed: bool = False, late: bool = False) -> Target:
    """The task with the thresholds that were measured, whether or not they admit it."""
    task = ballast_task(steps, interval, weighed, late)
    return Target(
        name=f"ballast, {interval} steps a segment",
        task=task,
        build=lambda: build(late),
        optimize=optimizer,
        loss=loss,
        thresholds=measure_profile(task).thresholds,
    )


def is_admitted(task: LoadedTask) -> bool:
    """Whether the task gets a profile, so that a solver could hide in its thresholds."""
    try:
        require_thresholds(measure_profile(task))
    except UnsupportedError:
        return False
    return True


def slack(target: Target, segment: int = 0) -> dict[str, float]:
    """By slot of the weights: what the component's limit allows there, over the way of the slot in an honest segment.

    From 1 on the slot need not be trained at all. A slot that stands still has none.
    """
    way = difference(target, target.honest[segment], target.honest[segment + 1])
    allowed = relative_limit(target.thresholds[Component.PARAMETER - 1]) * distance(target, way)
    own = {target.task.names.slots[i]: distance(target, {i: part}) for i, part in way.items()}
    return {name: allowed / each for name, each in own.items() if each}


def idle(workshop: Workshop, wanted: Callable[[Target], State] | None = None) -> Forgery:
    """Only what a profile sees is trained: then the ballast is where anybody can say it is, and the rest is free.

    Noise, which is longer than an honest update, keeps residuals from pointing in one direction. ``wanted`` is a model
    to go to; without one the rest stays where it is.
    """
    target = workshop.target
    place = target.task.names.slots.index(NAME)
    finest = max(target.task.program.slots[i].scale for i in target.places(Component.PARAMETER) if i != place)
    limit = relative_limit(target.thresholds[Component.PARAMETER - 1])
    pulls = _pulls(target)
    at, states = workshop.start, [workshop.start]
    for segment in range(target.segments):
        if not pulls[segment]:
            at = workshop.segment(at, segment)
            states.append(at)
            continue
        # What the ballast's way allows in the finest of the other slots, here and in the next segment.
        allowed, after = (
            PART * limit * pull * ELEMENTS**0.5 / 2.0**finest for pull in (pulls[segment], (*pulls[1:], 0.0)[segment])
        )
        goal = at if wanted is None else wanted(target)
        left = without(place, difference(target, at, goal))
        # Half of what is allowed for the way, a third for noise; the noise of the start counts once more.
        far = length(left)
        at = added(at, left, min(1.0, allowed / 2 / far) if far else 0.0)
        pulled = numbers(at[place]) - np.float32(pulls[segment])
        at = [words_of(pulled) if i == place else own for i, own in enumerate(at)]
        states.append(added(at, without(place, noise(workshop)), min(allowed, after) / 3))
    return Forgery(states, damage=harm(target, states))


def _pulls(target: Target) -> list[float]:
    """How far each segment moves each number of the ballast, known from the data: no network is needed."""
    late = target.data()[0][:, LATE].numpy().astype(np.float64)
    model = target.model
    is_late = isinstance(model, Weighed) and model.late
    each = LATE_PULL * late[target.order()].mean(1) if is_late else np.full(len(target.order()), PULL)
    return [float(part.sum() * RATE) for part in np.split(each, target.segments)]


def without(place: int, vector: Vector) -> Vector:
    """The vector without a slot."""
    return {i: part for i, part in vector.items() if i != place}


def accepted(steps: int, interval: int, weighed: bool = False, late: bool = False) -> list[str]:
    """The attacks that pass in a task that gets a profile."""
    target = ballast_target(steps, interval, weighed, late)
    if not is_admitted(target.task):
        return []
    return [attack.name for attack in ATTACKS if mount(attack, target).passes_tolerance]


ATTACKS = (
    Attack("ballast-idle", "nothing but ballast moves", idle, hides=True),
    Attack(
        "ballast-goal",
        "ballast moves, the rest goes to a model with a back door",
        partial(idle, wanted=lambda target: target.poisoned),
        hides=True,
    ),
)
"""Not part of the battery: their task is made for them."""
