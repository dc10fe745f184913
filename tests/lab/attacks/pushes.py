"""What pushes within the tolerance have in common: a goal, directions, how far they may go, and what became of them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lab.attacks.attack_target import TRIGGER, State, Target, numbers
from lab.attacks.forgery import Forgery, Workshop
from lab.attacks.within_tolerance import PART, accuracy, allowance, triggered
from pol.graph.step_program import Component

Vector = Mapping[int, NDArray[np.float64]]
"""A difference of states: numbers by slot."""
Plan = Callable[[int, Vector], Mapping[Component, Vector]]
"""From a segment and the unit vector of its end to the goal, by slot: pushes as shares of what each component is
allowed."""


def towards(target: Target, end: State, wanted: State, component: Component = Component.PARAMETER) -> Vector:
    """The unit vector from one state to another, within a component."""
    return unit(difference(target, end, wanted, component))


def difference(target: Target, start: State, end: State, component: Component = Component.PARAMETER) -> Vector:
    """How the numbers of a component differ."""
    places = target.places(component)
    return {i: numbers(end[i]).astype(np.float64) - numbers(start[i]) for i in places}


def noise(workshop: Workshop, component: Component = Component.PARAMETER) -> Vector:
    """A random unit vector of a component."""
    shapes = {i: workshop.start[i].shape for i in workshop.target.places(component)}
    return unit({i: workshop.random.standard_normal(shape) for i, shape in shapes.items()})


def length(vector: Vector) -> float:
    """The norm."""
    return float(np.sqrt(sum(float((part * part).sum()) for part in vector.values())))


def distance(target: Target, vector: Vector) -> float:
    """The norm as distances see it: numbers of slots with a scale count so many times finer."""
    slots = target.task.program.slots
    return length({i: part * 2.0 ** slots[i].scale for i, part in vector.items()})


def unit(vector: Vector) -> Vector:
    """The vector at length 1; one of length 0 stays."""
    whole = length(vector)
    return scaled(vector, 1 / whole) if whole else vector


def scaled(vector: Vector, factor: float) -> Vector:
    """A multiple."""
    return {i: part * factor for i, part in vector.items()}


def mixed(one: Vector, share: float, other: Vector) -> Vector:
    """A unit vector that has ``share`` of its squared length along ``one``, the rest along the rest of ``other``."""
    along = sum(float((part * one[i]).sum()) for i, part in other.items())
    rest = unit({i: part - along * one[i] for i, part in other.items()})
    return {i: share**0.5 * part + (1 - share) ** 0.5 * rest[i] for i, part in one.items()}


def added(state: State, vector: Vector, factor: float = 1.0) -> State:
    """A state moved by a vector."""
    result = list(state)
    for i, part in vector.items():
        result[i] = (numbers(state[i]) + part * factor).astype(np.float32).view(np.uint32)
    return result


def pushed(workshop: Workshop, plan: Plan) -> Forgery:
    """The training with each segment's end pushed by a plan, within what the thresholds allow.

    Whoever wants a back door brings the model that has one: what steering to it takes is the question.
    """
    target = workshop.target
    states, injected, way = [workshop.start], 0.0, 0.0
    for segment in range(target.segments):
        start = states[-1]
        end = workshop.segment(start, segment)
        way += length(difference(target, start, end))
        state = end
        for component, vector in plan(segment, towards(target, end, target.poisoned)).items():
            allowed = PART * allowance(target, start, end, component)
            state = added(state, vector, allowed)
            if component is Component.PARAMETER:
                injected += allowed * length(vector)
        states.append(state)
    return Forgery(states, damage={"injected, of the way": injected / way, **harm(target, states)})


def harm(target: Target, states: Sequence[State], *trigger: int) -> dict[str, float]:
    """What became of the pushes, against the honest model: distance, accuracy and back door."""
    honest, trigger = target.honest, trigger or (TRIGGER,)
    way = sum(length(difference(target, a, b)) for a, b in pairwise(honest))
    return {
        "end moved, of the way": length(difference(target, honest[-1], states[-1])) / way,
        "accuracy lost": accuracy(target, honest[-1]) - accuracy(target, states[-1]),
        "back door": triggered(target, states[-1], *trigger),
        "back door of the honest model": triggered(target, honest[-1], *trigger),
    }
