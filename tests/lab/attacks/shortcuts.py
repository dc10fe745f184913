"""Training less than claimed: skipped, copied, guessed and extrapolated steps."""

from collections.abc import Callable
from functools import partial

import numpy as np

from lab.attacks.attack_loop import forward_loss
from lab.attacks.attack_target import Floats, State, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.synthetic_data import between
from pol.errors import ProtocolError
from pol.graph.step_program import Component

JIA = "Jia et al. 2021, arXiv:2103.05633"
FOLKLORE = "folklore"

Fill = Callable[[State, State], State]
"""The end of a segment that isn't trained, from the two checkpoints before it."""


def every(steps: int, share: int) -> frozenset[int]:
    """One step of every ``share``: ``every(300, 10)`` leaves out 10 % of the steps, spread evenly."""
    if share < 1:
        raise ProtocolError(f"can't leave out one step of every {share}")
    return frozenset(range(share - 1, steps, share))


def interpolated(workshop: Workshop) -> Forgery:
    """A straight line from the start to a stolen model."""
    target = workshop.target
    return Forgery(between(workshop, workshop.start, target.stolen[-1], target.segments))


def skipped(workshop: Workshop, share: int) -> Forgery:
    """One step of every ``share`` isn't trained."""
    target = workshop.target
    left_out = every(target.task.document.steps, share)
    state, states = workshop.start, [workshop.start]
    for step in range(target.task.document.steps):
        state = workshop.ticked(state, 1) if step in left_out else workshop.train(state, step, 1)
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def repeated_checkpoints(workshop: Workshop) -> Forgery:
    """A tenth of the segments ends where it began."""
    where = workshop.chosen(0.1)
    return Forgery(_filled(workshop, where, lambda _previous, state: workshop.ticked(state)))


def extrapolated(workshop: Workshop, share: float) -> Forgery:
    """A share of the segments repeats the movement of the segment before instead of training."""
    names = workshop.target.task.names.slots

    def fill(previous: State, state: State) -> State:
        def repeat(place: int, values: Floats) -> Floats:
            moved: Floats = values + (values - numbers(previous[place]))
            # What is an average of squares stays one.
            return np.maximum(moved, np.float32(0)) if names[place].endswith(("_sq", "_var")) else moved

        return workshop.ticked(workshop.with_numbers(state, repeat))

    return Forgery(_filled(workshop, workshop.chosen(share), fill))


def sidestepped(workshop: Workshop) -> Forgery:
    """The weights of a tenth of the segments go in a random direction, as far as they went in the segment before."""

    def fill(previous: State, state: State) -> State:
        def step(place: int, values: Floats) -> Floats:
            return values + _noise(workshop, values, float(np.linalg.norm(values - numbers(previous[place]))))

        return workshop.ticked(workshop.with_numbers(state, step, [Component.PARAMETER]))

    return Forgery(_filled(workshop, workshop.chosen(0.1), fill))


def stopped_early(workshop: Workshop) -> Forgery:
    """Trains half of the segments; the rest is noise of the size of the last honest movement."""
    target = workshop.target
    half = target.segments // 2
    states = [workshop.start]
    for segment in range(half):
        states.append(workshop.segment(states[-1], segment))
    sizes = [float(np.linalg.norm(numbers(b) - numbers(a))) for a, b in zip(states[-2], states[-1], strict=True)]
    for _ in range(half, target.segments):
        noisy = workshop.with_numbers(
            states[-1], lambda place, values: values + _noise(workshop, values, sizes[place]), [Component.PARAMETER]
        )
        states.append(workshop.ticked(noisy))
    return Forgery(states)


def fabricated(workshop: Workshop) -> Forgery:
    """Nothing is trained: a random walk in steps that shrink, of a plausible size."""
    states = [workshop.start]
    for segment in range(workshop.target.segments):
        size = 0.5 / np.sqrt(segment + 1)

        def walk(_place: int, values: Floats, size: float = size) -> Floats:
            return values + _noise(workshop, values, size)

        states.append(workshop.ticked(workshop.with_numbers(states[-1], walk, [Component.PARAMETER])))
    return Forgery(states)


def lazy_backward(workshop: Workshop) -> Forgery:
    """Only a forward pass where the batch is easy: the update that is left out is among the smallest."""
    target = workshop.target
    steps = target.task.document.steps
    losses: list[float] = []
    state, states = workshop.start, [workshop.start]
    for step in range(steps):
        losses.append(forward_loss(target, state, step))
        easy = step >= steps // 10 and losses[-1] <= np.quantile(losses, 0.05)
        if easy:
            workshop.steps += target.forward_flops / target.step_flops
            state = workshop.ticked(state, 1)
        else:
            # The forward pass is part of the step.
            state = workshop.train(state, step, 1)
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def collapsed(workshop: Workshop) -> Forgery:
    """The first segment jumps to zeros, where every gradient but that of the last bias vanishes; then by the rules.

    All later segments are true. What is counted of them is the share of the numbers that still move: a program of that
    bias alone gives the same bits (tested).
    """
    target = workshop.target
    zeros = workshop.with_numbers(workshop.start, lambda _place, values: np.zeros_like(values))
    states = [workshop.start, workshop.ticked(zeros)]
    after, _ = target.executor.advance(list(states[-1]), target.interval)
    weights = target.places(Component.PARAMETER)
    moving = sum(int(np.count_nonzero(after[i] != states[-1][i])) for i in weights)
    share = moving / sum(after[i].size for i in weights)
    for segment in range(1, target.segments):
        states.append(workshop.train(states[-1], segment * target.interval, target.interval, share=share))
    return Forgery(states)


def _filled(workshop: Workshop, where: list[int], fill: Fill) -> list[State]:
    """Honest training, but some segments are filled from the two checkpoints before them."""
    states = [workshop.start]
    for segment in range(workshop.target.segments):
        if segment in where:
            states.append(fill(states[-2] if segment else states[-1], states[-1]))
        else:
            states.append(workshop.segment(states[-1], segment))
    return states


def _noise(workshop: Workshop, values: Floats, size: float) -> Floats:
    drawn = workshop.random.standard_normal(values.shape).astype(np.float32)
    norm = float(np.linalg.norm(drawn))
    return drawn * np.float32(size / norm) if norm > 0.0 else drawn


ATTACKS = (
    Attack("interpolation", "straight line from the start to a stolen model", interpolated, JIA),
    *(
        Attack(f"skip-{100 // n}%", f"one step of {n} left out", partial(skipped, share=n), FOLKLORE)
        for n in (100, 20, 10, 2)
    ),
    Attack("repeat-checkpoints", "10 % of the segments end where they began", repeated_checkpoints, FOLKLORE),
    Attack("early-stop", "half of the training, then noise of a plausible size", stopped_early, FOLKLORE),
    Attack("fabrication", "no training at all: a random walk", fabricated, JIA),
    Attack("sidestep", "10 % of the segments go a plausible way in a random direction", sidestepped),
    Attack("extrapolate-10%", "10 % of the segments repeat the movement before", partial(extrapolated, share=0.1)),
    Attack("extrapolate-50%", "every second segment repeats the movement before", partial(extrapolated, share=0.5)),
    Attack("collapse", "one jump to where gradients vanish, true segments from there on", collapsed),
    Attack("lazy-backward", "no backward pass for the easiest batches", lazy_backward),
)
