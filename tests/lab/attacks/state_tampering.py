"""Checkpoints that are tampered with: training goes on from the changed state."""

from collections.abc import Callable
from functools import partial

import numpy as np

from lab.attacks.attack_target import Floats, State, Target, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType

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


def _has_momentum(target: Target) -> bool:
    return any(name.endswith(":momentum_buffer") for name in target.task.names.slots)


ATTACKS = (
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
        applies=_has_momentum,
    ),
    Attack("step-counter", "a counter says one step more", miscounted, applies=_has(Component.BUFFER, DType.I32)),
    Attack("negative-zeros", "zeros become negative or denormal", signed_zeros, hides=True, applies=has_zeros),
)
