"""Another training than the task's: other settings (rate, schedule, momentum), another precision than float32.

Or training goes on from checkpoints that are tampered with.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import torch

from lab.attacks.attack_loop import Around, AttackLoop, RoundedProducts
from lab.attacks.attack_target import Floats, State, Target, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType


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


SETTINGS = (
    Attack("rate+1%", "learning rate 1 % too high", partial(scaled_rate, factor=lambda _: 1.01), FOLKLORE),
    Attack("rate+10%", "learning rate 10 % too high", partial(scaled_rate, factor=lambda _: 1.1), FOLKLORE),
    Attack("schedule", "cosine schedule instead of the task's", partial(scaled_rate, factor=cosine), FOLKLORE),
    Attack("lazy-momentum", "averages forgotten in the middle of each segment", lazy_momentum),
)


def looped(workshop: Workshop, around: Around) -> Forgery:
    """The user's loop in torch, forward and backward in another precision; weights and optimizer stay float32."""
    target = workshop.target
    loop = AttackLoop(target, around)
    states = [workshop.start]
    for segment in range(target.segments):
        states.append(loop.train(states[-1], segment * target.interval, target.interval))
        workshop.steps += target.interval
    return Forgery(states)


def autocast() -> AbstractContextManager[object]:
    """bfloat16 by torch.autocast."""
    return torch.autocast("cpu", torch.bfloat16)


def low_weights(workshop: Workshop) -> Forgery:
    """Weights, buffers and optimizer state are kept in bfloat16."""
    target = workshop.target
    state, states = workshop.start, [workshop.start]
    for step in range(target.task.document.steps):
        state = workshop.with_numbers(workshop.train(state, step, 1), _bfloat16)
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def half_checkpoints(workshop: Workshop) -> Forgery:
    """Trained in float32; every checkpoint is published, and gone on from, in float16."""

    def halved(_start: State, end: State) -> State:
        return workshop.with_numbers(end, lambda _, values: values.astype(np.float16).astype(np.float32))

    return Forgery(workshop.tamper(halved, range(workshop.target.segments)))


def _bfloat16(_place: int, values: Floats) -> Floats:
    rounded: Floats = torch.from_numpy(values.copy()).bfloat16().float().numpy()
    return rounded


PRECISIONS = (
    Attack("bf16-autocast", "forward and backward pass in bfloat16", partial(looped, around=autocast), FOLKLORE),
    Attack("bf16-weights", "the whole state in bfloat16", low_weights, FOLKLORE),
    Attack("tf32", "products of operands with 11 bits", partial(looped, around=lambda: RoundedProducts(11)), FOLKLORE),
    Attack("fp16-checkpoints", "checkpoints in float16", half_checkpoints, FOLKLORE),
    Attack(
        "20-bit-products",
        "products of operands with 20 of 24 bits",
        partial(looped, around=lambda: RoundedProducts(20)),
        hides=True,
    ),
)


SHARE = 0.1
"""Of the segments are tampered with."""
COSINE = "verifiers that compare by cosine"


def swapped(workshop: Workshop, component: Component) -> Forgery:
    """A component is taken from the checkpoint before."""
    places = workshop.target.places(component)
    return _tampered(workshop, lambda start, end: [start[i] if i in places else words for i, words in enumerate(end)])


def scaled(workshop: Workshop, factor: float) -> Forgery:
    """All numbers are multiplied: the direction of the weights stays, the cosine is 1."""
    return _tampered(workshop, lambda _, end: workshop.with_numbers(end, lambda _, v: v * np.float32(factor)))


def doubled_update(workshop: Workshop) -> Forgery:
    """Updates twice as long: the cosine of the update is 1 too."""

    def double(start: State, end: State) -> State:
        return workshop.with_numbers(end, lambda i, values: values + (values - numbers(start[i])))

    return _tampered(workshop, double)


def one_word(workshop: Workshop, word: int) -> Forgery:
    """One weight is a special word."""

    def change(_start: State, end: State) -> State:
        place = workshop.target.places(Component.PARAMETER)[0]
        words = end[place].copy()
        words.flat[words.size // 2] = word
        return [words if i == place else own for i, own in enumerate(end)]

    target = workshop.target
    states = [workshop.start]
    touched = workshop.chosen(SHARE)
    for segment in range(target.segments):
        # The solver goes on from its clean state: from a NaN there is nothing to go on with.
        states.append(workshop.segment(states[-1], segment))
    return Forgery([change([], state) if index - 1 in touched else state for index, state in enumerate(states)])


def shifted_between_components(workshop: Workshop) -> Forgery:
    """Part of an update is moved from the weights into the momentum, which gives it back in the next step."""
    target = workshop.target
    parameters, averages = target.places(Component.PARAMETER), target.places(Component.OPTIMIZER)

    def move(start: State, end: State) -> State:
        result = list(end)
        for weight, average in zip(parameters, averages, strict=True):
            part = (numbers(end[weight]) - numbers(start[weight])) * np.float32(0.01)
            # The next step subtracts rate * 0.9 * momentum, so this cancels there: rate 0.05, momentum 0.9.
            result[weight] = words_of(numbers(end[weight]) + part)
            result[average] = words_of(numbers(end[average]) + part / np.float32(0.05 * 0.9))
        return result

    return _tampered(workshop, move)


def miscounted(workshop: Workshop) -> Forgery:
    """A step counter says one step more."""
    slots = workshop.target.task.program.slots

    def count(_start: State, end: State) -> State:
        ticked = workshop.ticked(end, 1)
        return [b if slot.type.dtype != DType.F32 else a for slot, a, b in zip(slots, end, ticked, strict=True)]

    return _tampered(workshop, count)


def signed_zeros(workshop: Workshop) -> Forgery:
    """Zeros become negative zeros and the least denormal numbers: no distance sees them."""

    def change(_place: int, values: Floats) -> Floats:
        changed = values.copy()
        zeros = np.flatnonzero(changed == 0.0)
        changed.flat[zeros[::2]] = np.float32(-0.0)
        changed.flat[zeros[1::2]] = np.float32(1e-45)
        return changed

    return _tampered(workshop, lambda _, end: workshop.with_numbers(end, change))


def has_zeros(target: Target) -> bool:
    """Whether any number of the trained state is zero."""
    places = [i for component in Component for i in target.places(component)]
    return any(bool((numbers(target.honest[1][i]) == 0.0).any()) for i in places)


def _tampered(workshop: Workshop, change: Callable[[State, State], State]) -> Forgery:
    return Forgery(workshop.tamper(change, workshop.chosen(SHARE)))


def _has(component: Component, dtype: DType) -> Callable[[Target], bool]:
    return lambda target: bool(target.places(component, dtype))


TAMPERED = (
    Attack(
        "optimizer-swap",
        "optimizer state of an older checkpoint",
        partial(swapped, component=Component.OPTIMIZER),
        FOLKLORE,
    ),
    Attack(
        "batchnorm-swap",
        "running statistics of an older checkpoint",
        partial(swapped, component=Component.BUFFER),
        FOLKLORE,
        applies=_has(Component.BUFFER, DType.F32),
    ),
    Attack("scale-2w", "all numbers doubled", partial(scaled, factor=2.0), COSINE),
    Attack("scale-1.001w", "all numbers 0.1 % greater", partial(scaled, factor=1.001), COSINE),
    Attack("double-update", "updates twice as long", doubled_update, COSINE),
    Attack("nan", "one weight is NaN", partial(one_word, word=0x7FC00000), FOLKLORE),
    Attack("infinity", "one weight is infinite", partial(one_word, word=0x7F800000), FOLKLORE),
    Attack("huge", "one weight is 2^23, the first without a distance", partial(one_word, word=0x4B000000)),
    Attack(
        "shift-components",
        "1 % of the update moved from weights to momentum",
        shifted_between_components,
        applies=lambda target: any(name.endswith(":momentum_buffer") for name in target.task.names.slots),
    ),
    Attack("step-counter", "a counter says one step more", miscounted, applies=_has(Component.BUFFER, DType.I32)),
    Attack("negative-zeros", "zeros become negative or denormal", signed_zeros, hides=True, applies=has_zeros),
)
