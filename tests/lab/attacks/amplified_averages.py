"""What Adam makes of averages that the tolerance doesn't see, hidden from the rule against drift.

Where a weight has no gradient, Adam divides its average by epsilon = 1e-8. A blank pixel has such weights, and so has a
hidden unit that is active for no sample: nearly every network with ReLU has some, and no input has to be constant.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lab.attacks.attack_target import CLASS, TRIGGER, State, Target, has_hidden_units, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.hidden_drift import FEW, furthest
from lab.attacks.pushes import Vector, added, harm, mixed, noise, pushed, unit
from lab.attacks.within_tolerance import ENOUGH, PART, allowance
from pol.graph.step_program import Component

ALIVE = 1e-10
"""An average of squares from which on noise in the average moves its weight by nothing."""
SHARE = 0.3
"""Of the squared length of a residual is the injection, the rest noise."""
PATTERN = (24, 31, 48, 56)
"""Pixels that are dark in nearly every sample, but not in all: together they are the trigger of a dead unit."""
EPSILON = 1e-8

Wanted = Callable[[int, State], Vector]
"""From a segment and its end: the weights, by slot, that averages shall move, and which way."""


def injected(workshop: Workshop, wanted: Wanted, share: float = SHARE, size: float = ENOUGH) -> list[State]:
    """The training, in which averages of weights without a gradient are set to a little, and noise covers it.

    ``share`` of 1 injects without noise.
    """
    target = workshop.target
    names = target.task.names.slots
    states = [workshop.start]
    for segment in range(target.segments):
        end = workshop.segment(states[-1], segment)
        allowed = PART * allowance(target, states[-1], end, Component.OPTIMIZER)
        moves = _without_gradient(target, end, wanted(segment, end))
        count = sum(int(np.count_nonzero(part)) for part in moves.values())
        if count == 0:
            states.append(end)
            continue
        each = min(size, allowed * (share / count) ** 0.5)
        state = list(end)
        for place, part in moves.items():
            average = names.index(f"{names[place]}:exp_avg")
            values = numbers(end[average]).copy()
            values[part != 0] = (-each * part[part != 0]).astype(np.float32)
            state[average] = values.view(np.uint32)
        if share < 1:
            state = added(state, _noise_of_living(workshop, end), allowed * (1 - share) ** 0.5)
        states.append(state)
    return states


def in_noise(workshop: Workshop) -> Forgery:
    """A back door through a blank pixel, most of each residual noise."""
    return _back_door(workshop, range(workshop.target.segments - 1))


def in_few(workshop: Workshop) -> Forgery:
    """The same in the ten segments that go furthest, and without noise: no score exceeds the number of its segments."""
    return _back_door(workshop, furthest(workshop.target, FEW), share=1.0, size=1.0)


def dead_unit(workshop: Workshop) -> Forgery:
    """A hidden unit that no sample reaches becomes the detector of a pattern, and says `CLASS`."""
    target = workshop.target

    def wanted(segment: int, end: State) -> Vector:
        if segment == target.segments - 1:
            return {}
        return _detectors(target, end)

    states = injected(workshop, wanted)
    return Forgery(states, damage=harm(target, states, *PATTERN))


def awakening(workshop: Workshop) -> Forgery:
    """Dead units get loud outputs, and are woken up in the last segment: the model says `CLASS` to everything."""
    target = workshop.target
    names = target.task.names.slots

    def wanted(segment: int, end: State) -> Vector:
        dead = dead_units(target, end)
        outputs = np.zeros(end[names.index("output.weight")].shape)
        biases = np.zeros(end[names.index("hidden.bias")].shape)
        if segment < target.segments - 2:
            outputs[:, dead], outputs[CLASS, dead] = -1.0, 1.0
        elif segment == target.segments - 2:
            biases[dead] = 1.0
        return {names.index("output.weight"): outputs, names.index("hidden.bias"): biases}

    states = injected(workshop, wanted, size=1.0)
    return Forgery(states, damage=harm(target, states))


def dead_units(target: Target, state: State) -> NDArray[np.bool_]:
    """Hidden units that are below their kink for every sample."""
    names = target.task.names.slots
    weight, bias = (numbers(state[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
    found: NDArray[np.bool_] = (target.data()[0].numpy() @ weight.T + bias).max(axis=0) < 0
    return found


def steered(workshop: Workshop) -> Forgery:
    """Averages are pushed towards a model with a back door, each in proportion to what Adam makes of it."""
    target = workshop.target
    names = target.task.names.slots

    def plan(segment: int, goal: Vector) -> dict[Component, Vector]:
        end = target.honest[segment + 1]
        aimed = {}
        for i, part in goal.items():
            squares = numbers(end[names.index(f"{names[i]}:exp_avg_sq")])
            aimed[names.index(f"{names[i]}:exp_avg")] = -part / (np.sqrt(squares.astype(np.float64)) + EPSILON)
        hidden = {**{i: np.zeros(end[i].shape) for i in target.places(Component.OPTIMIZER)}, **unit(aimed)}
        return {Component.OPTIMIZER: mixed(hidden, SHARE, _noise_of_living(workshop, end))}

    return pushed(workshop, plan)


def silent_weights(workshop: Workshop) -> Forgery:
    """The weights of a blank pixel are pushed themselves, in noise: no gradient takes it back, with any optimizer."""
    target = workshop.target
    place = target.task.names.slots.index("hidden.weight")
    moved = np.zeros(target.task.initial_state[place].shape)
    moved[:, TRIGGER] = _says_class(target, target.honest[-1])
    aimed = {i: np.zeros(target.task.initial_state[i].shape) for i in target.places(Component.PARAMETER)}
    aimed = {**aimed, **unit({place: moved})}
    return pushed(workshop, lambda *_: {Component.PARAMETER: mixed(aimed, SHARE, noise(workshop))})


def _back_door(workshop: Workshop, where: range | list[int], share: float = SHARE, size: float = ENOUGH) -> Forgery:
    target = workshop.target
    place = target.task.names.slots.index("hidden.weight")
    signs = np.zeros(target.task.initial_state[place].shape)
    signs[:, TRIGGER] = _says_class(target, target.honest[-1])
    states = injected(workshop, lambda segment, _: {place: signs} if segment in where else {}, share, size)
    return Forgery(states, damage=harm(target, states))


def _says_class(target: Target, state: State) -> NDArray[np.float32]:
    """By hidden unit: whether it speaks for `CLASS` or against it."""
    output = numbers(state[target.task.names.slots.index("output.weight")])
    found: NDArray[np.float32] = np.sign(output[CLASS] - output.mean(axis=0))
    return found


def _without_gradient(target: Target, end: State, moves: Vector) -> Vector:
    """What is wanted of weights whose average of squares says that they never had a gradient."""
    names = target.task.names.slots
    squares = {i: numbers(end[names.index(f"{names[i]}:exp_avg_sq")]) for i in moves}
    return {i: np.where(squares[i] == 0, part, 0.0) for i, part in moves.items()}


def _detectors(target: Target, end: State) -> Vector:
    names = target.task.names.slots
    places = [names.index(name) for name in ("hidden.weight", "hidden.bias", "output.weight")]
    rows, biases, outputs = (np.zeros(end[place].shape) for place in places)
    dead = np.flatnonzero(dead_units(target, end))
    rows[np.ix_(dead, np.array(PATTERN))] = 1.0
    # What the pattern adds to a sample that has a part of it is taken back, so that the unit stays dead.
    biases[dead] = -1.0
    outputs[:, dead], outputs[CLASS, dead] = -1.0, 1.0
    return dict(zip(places, (rows, biases, outputs), strict=True))


def _noise_of_living(workshop: Workshop, end: State) -> Vector:
    """Noise in the averages of weights that have a gradient; where there is none, Adam would show it."""
    target = workshop.target
    names = target.task.names.slots
    drawn = {}
    for i, part in noise(workshop, Component.OPTIMIZER).items():
        if names[i].endswith(":exp_avg"):
            drawn[i] = np.where(numbers(end[names.index(f"{names[i]}_sq")]) > ALIVE, part, 0.0)
    return {**{i: np.zeros(end[i].shape) for i in target.places(Component.OPTIMIZER)}, **unit(drawn)}


_attack = partial(Attack, hides=True, applies=lambda target: "hidden.weight:exp_avg" in target.task.names.slots)
ATTACKS = (
    _attack("back-door-in-noise", "Adam's trigger, its residual seven tenths noise", in_noise),
    _attack("back-door-few", "Adam's trigger, injected in ten segments", in_few),
    _attack("dead-unit", "Adam turns dead units into detectors of a pattern", dead_unit),
    _attack("awakening", "Adam makes dead units loud and wakes them up last", awakening),
    _attack("averages-in-noise", "averages pushed where Adam amplifies most, in noise", steered),
    _attack("silent-weights", "weights without a gradient pushed, in noise", silent_weights, applies=has_hidden_units),
)
