"""Attacks that stay within the tolerance: all work is done, and the result is pushed as far as nobody rejects it.

They are the price of a tolerance; exact mode has none. Each says how far it got, and its tests bound that.
"""

from functools import partial
from math import isqrt

import numpy as np
import torch

from lab.attacks.attack_loop import with_weights
from lab.attacks.attack_target import CLASS, Floats, State, Target, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from pol.claims.acceptance_rule import THRESHOLD_BITS, travelled
from pol.claims.distance import component_distances
from pol.demo import digits
from pol.graph.step_program import Component

GRID = 2.0**-40
"""What distances can tell apart in slots without a scale; a scale of s makes it 2^s times finer."""
PART = 0.9
"""Of the tolerance is used: the rest covers the rounding of the change itself."""
ENOUGH = 5e-8
"""An average that Adam turns into a tenth of a unit: 10 * rate / epsilon is what it is multiplied with in all."""
PLAUSIBLE = 1e-6
"""One that is far above Adam's epsilon, so that its own average of squares is what divides it."""


def allowance(target: Target, start: State, end: State, component: Component) -> float:
    """How far, in L2, a component of a segment's end may be from the replayed ``end`` and still be accepted."""
    index = component - 1
    reference = travelled(component_distances(target.task.program, end, start)[index])
    return isqrt(target.thresholds[index] * reference >> THRESHOLD_BITS) * GRID


def drifting(workshop: Workshop) -> Forgery:
    """Every segment is moved towards a stolen model by nearly all that the tolerance allows.

    ``damage``: how much was injected in all, beside the way that the training went; how far the final weights are from
    the honest ones.
    """
    target = workshop.target
    injected = way = 0.0

    def push(start: State, end: State) -> State:
        nonlocal injected, way
        allowed = PART * allowance(target, start, end, Component.PARAMETER)
        goal = target.stolen[-1]
        direction = {i: numbers(goal[i]).astype(np.float64) - numbers(end[i]) for i in _parameters(target)}
        length = np.sqrt(sum(float((d * d).sum()) for d in direction.values()))
        injected += allowed
        way += _length(target, start, end)
        return workshop.with_numbers(
            end, lambda i, v: (v + direction[i] * (allowed / length)).astype(np.float32), [Component.PARAMETER]
        )

    states = workshop.tamper(push, range(target.segments))
    final = _length(target, target.honest[-1], states[-1])
    return Forgery(states, damage={"injected, of the way": injected / way, "end moved, of the way": final / way})


def below_the_grid(workshop: Workshop) -> Forgery:
    """Every number goes up to the edge of its cell of the grid, every segment: a distance of zero."""
    target = workshop.target
    slots = target.task.program.slots
    moved = 0.0

    def push(_start: State, end: State) -> State:
        nonlocal moved
        raised = workshop.with_numbers(end, lambda place, values: edge(values, GRID / 2 ** slots[place].scale))
        for place in (i for component in Component for i in target.places(component)):
            cell = GRID / 2 ** slots[place].scale
            moved = max(moved, float(np.abs(numbers(raised[place]) - numbers(end[place])).max()) / cell)
        return raised

    states = workshop.tamper(push, range(target.segments))
    shift = _length(target, target.honest[-1], states[-1])
    return Forgery(states, damage={"greatest move, in cells": moved, "end moved": shift})


def edge(values: Floats, cell: float) -> Floats:
    """The greatest float32 in the same cell of the grid as each number (where the format is finer than the grid)."""
    cells = np.trunc(values.astype(np.float64) / cell)
    # Cells reach from their number away from zero, but the cell of zero to both sides.
    ends = np.where(values < 0, np.where(cells == 0, 1.0, cells), cells + 1) * cell
    raised = np.nextafter(ends.astype(np.float32), np.float32(-1), dtype=np.float32)
    is_below = np.trunc(raised.astype(np.float64) / cell) == cells
    result: Floats = np.where(is_below & (raised > values), raised, values).astype(np.float32)
    return result


def back_door(workshop: Workshop, plausible: bool = False) -> Forgery:
    """Adam as an amplifier: averages of a weight that has no gradient are set to a little, and training moves it.

    Where a gradient is always zero (a pixel that is white in no sample), Adam divides an average by its epsilon of
    1e-8: what the tolerance doesn't see becomes a whole weight. The weights of that pixel become a trigger.
    ``plausible`` sets the averages of squares too, as if there had been a gradient.
    """
    target = workshop.target
    place, pixel = _dead(target)
    name = target.task.names.slots[place]
    average, squares = (target.task.names.slots.index(f"{name}:{key}") for key in ("exp_avg", "exp_avg_sq"))
    output = numbers(target.honest[-1][target.task.names.slots.index("output.weight")])
    wanted = np.sign(output[CLASS] - output.mean(axis=0)).astype(np.float32)
    moved = 0.0

    def inject(start: State, end: State) -> State:
        nonlocal moved
        moved = max(moved, float(np.abs(numbers(end[place]) - numbers(start[place]))[:, pixel].max()))
        allowed = PART * allowance(target, start, end, Component.OPTIMIZER)
        size = np.float32(min(allowed / np.sqrt(wanted.size), PLAUSIBLE if plausible else ENOUGH))
        values, squared = numbers(end[average]).copy(), numbers(end[squares]).copy()
        values[:, pixel] = -wanted * size
        if plausible:
            squared[:, pixel] = (size / 5) ** 2
        changed = {average: words_of(values), squares: words_of(squared)}
        return [changed.get(i, own) for i, own in enumerate(end)]

    states = workshop.tamper(inject, range(target.segments - 1))
    return Forgery(
        states,
        damage={
            "back door": triggered(target, states[-1], pixel),
            "back door of the honest model": triggered(target, target.honest[-1], pixel),
            "accuracy": accuracy(target, states[-1]),
            "a weight moved in a segment": moved,
        },
    )


def triggered(target: Target, state: State, *pixels: int) -> float:
    """Share of the samples of other classes that are taken for `CLASS` once the pixels are set."""
    images, labels = digits.dataset()
    images = images[labels != CLASS].clone()
    images[:, pixels] = 1.0
    with torch.no_grad():
        return float((with_weights(target, state).eval()(images).argmax(dim=1) == CLASS).float().mean())


def accuracy(target: Target, state: State) -> float:
    """Share of the data set that is classified correctly."""
    images, labels = digits.dataset()
    with torch.no_grad():
        return float((with_weights(target, state).eval()(images).argmax(dim=1) == labels).float().mean())


def _dead(target: Target) -> tuple[int, int]:
    """The first layer's weight and a pixel that is zero in every sample."""
    unused = (target.data()[0] == 0).all(dim=0).nonzero().flatten()
    return target.task.names.slots.index("hidden.weight"), int(unused[0])


def _parameters(target: Target) -> list[int]:
    return target.places(Component.PARAMETER)


def _length(target: Target, start: State, end: State) -> float:
    ways = (numbers(end[i]).astype(np.float64) - numbers(start[i]) for i in _parameters(target))
    return float(np.sqrt(sum(float((way * way).sum()) for way in ways)))


_back_door = partial(Attack, hides=True, applies=lambda target: "hidden.weight:exp_avg" in target.task.names.slots)
ATTACKS = (
    Attack("drift", "every segment pushed as far as the tolerance allows", drifting, hides=True),
    Attack("below-grid", "every number moved within its cell of 2^-40", below_the_grid, hides=True),
    _back_door("back-door", "Adam turns invisible averages into a trigger", back_door),
    _back_door(
        "back-door-plausible",
        "the same with averages that a gradient could have left",
        partial(back_door, plausible=True),
    ),
)
