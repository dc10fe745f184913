"""Training with other settings than the task's: rate, schedule, momentum."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from lab.attacks.attack_target import Floats, State, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE
from pol.graph.step_program import Component


def scaled_rate(workshop: Workshop, factor: Callable[[float], float]) -> Forgery:
    """Another learning rate: the task's times a factor that depends on the share of the training behind.

    The rate is the last thing that an update is multiplied with, in SGD and in AdamW (its decay included).
    """
    target = workshop.target
    steps = target.task.document.steps
    state, states = workshop.start, [workshop.start]
    for step in range(steps):
        moved = workshop.train(state, step, 1)
        scale = np.float32(factor(step / steps))

        def other(place: int, values: Floats, before: State = state, scale: np.float32 = scale) -> Floats:
            start = numbers(before[place])
            scaled: Floats = start + (values - start) * scale
            return scaled

        state = workshop.with_numbers(moved, other, [Component.PARAMETER])
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def cosine(done: float) -> float:
    """A cosine schedule from the full rate to zero."""
    return 0.5 * (1.0 + math.cos(math.pi * done))


def lazy_momentum(workshop: Workshop) -> Forgery:
    """Averages are forgotten in the middle of each segment, as if they hadn't been kept on the accelerator."""
    target = workshop.target
    state, states = workshop.start, [workshop.start]
    half = max(1, target.interval // 2)
    for segment in range(target.segments):
        first = segment * target.interval
        state = workshop.train(state, first, half)
        state = workshop.with_numbers(state, lambda _, values: np.zeros_like(values), [Component.OPTIMIZER])
        state = workshop.train(state, first + half, target.interval - half)
        states.append(state)
    return Forgery(states)


ATTACKS = (
    Attack("rate+1%", "learning rate 1 % too high", partial(scaled_rate, factor=lambda _: 1.01), FOLKLORE),
    Attack("rate+10%", "learning rate 10 % too high", partial(scaled_rate, factor=lambda _: 1.1), FOLKLORE),
    Attack("schedule", "cosine schedule instead of the task's", partial(scaled_rate, factor=cosine), FOLKLORE),
    Attack("lazy-momentum", "averages forgotten in the middle of each segment", lazy_momentum),
)
