"""Drift that hides from the rule against it: pushes whose directions don't add up, although the pushes do.

The rule adds unit vectors, up to a mean cosine of 1/2 (docs/spec/verdict.md#drift). So a solver can mix directions,
rotate them, push seldom, push in places that are judged apart, or push back where it costs nothing.
"""

from collections.abc import Mapping

import numpy as np

from lab.attacks.attack_target import Target
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.pushes import Vector, difference, length, mixed, noise, pushed, scaled, unit
from pol.graph.step_program import Component
from pol.verification.verdict.drift import CHANCE

ALONG = 0.4
"""Share of a push's squared length towards the goal: its directions have this mean cosine, below the rule's 1/2."""
TURN = np.pi
"""By which a rotating direction turns in all; half a turn still goes two thirds of the way to its goal."""
WORTHLESS = 0.25
"""Of what is allowed: a push that counts in the rule as much as any other. A shorter one drowns in float32."""
BACK = 0.2
"""Share of the segments that push back: n unit vectors add up to 0.6 n, and score 0.36 n."""
FEW = int(CHANCE) - 1
"""Segments that may differ without a score above the limit, however they point; one less, as scores are estimated."""
LATE = 0.6
"""Share of the training after which pushes change sign."""

Pushes = Mapping[Component, Vector]
PARAMETER = Component.PARAMETER


def in_noise(workshop: Workshop) -> Forgery:
    """Most of each push is noise of its own."""
    return pushed(workshop, lambda _, goal: {PARAMETER: mixed(goal, ALONG, noise(workshop))})


def in_pairs(workshop: Workshop) -> Forgery:
    """The same, but every second segment takes the noise before it back: it doesn't harm the goal."""
    drawn = noise(workshop)

    def plan(segment: int, goal: Vector) -> Pushes:
        nonlocal drawn
        drawn = scaled(drawn, -1.0) if segment % 2 else noise(workshop)
        return {PARAMETER: mixed(goal, ALONG, drawn)}

    return pushed(workshop, plan)


def rotating(workshop: Workshop) -> Forgery:
    """The direction turns slowly, from a quarter turn before the goal to a quarter turn behind it."""
    aside, last = noise(workshop), max(1, workshop.target.segments - 1)

    def plan(segment: int, goal: Vector) -> Pushes:
        angle = TURN * (segment / last - 0.5)
        turned = mixed(goal, float(np.cos(angle)) ** 2, scaled(aside, float(np.sign(angle)) or 1.0))
        return {PARAMETER: turned}

    return pushed(workshop, plan)


def by_slots(workshop: Workshop) -> Forgery:
    """Each segment pushes one tensor alone: the directions of different tensors are orthogonal."""
    places = workshop.target.places(PARAMETER)

    def plan(segment: int, goal: Vector) -> Pushes:
        place = places[segment % len(places)]
        return {PARAMETER: unit({place: goal[place]})}

    return pushed(workshop, plan)


def in_few(workshop: Workshop) -> Forgery:
    """Only the ten segments that go furthest are pushed: a score never exceeds the number of its segments."""
    longest = furthest(workshop.target, FEW)
    return pushed(workshop, lambda segment, goal: {PARAMETER: goal} if segment in longest else {})


def across(workshop: Workshop) -> Forgery:
    """Ten segments push the weights and ten others the momentum: components are judged apart."""
    ranked = furthest(workshop.target, 2 * FEW)
    moments = optimizer_twin(workshop.target)

    def plan(segment: int, goal: Vector) -> Pushes:
        if segment not in ranked:
            return {}
        if ranked.index(segment) % 2 == 0:
            return {PARAMETER: goal}
        # SGD subtracts the momentum, Adam the average: a push of it against the goal moves the weights later.
        return {Component.OPTIMIZER: {moments[i]: -part for i, part in goal.items()}}

    return pushed(workshop, plan)


def counterweights(workshop: Workshop) -> Forgery:
    """Some segments are pushed back by next to nothing: directions cancel, pushes don't."""
    back = set(workshop.chosen(BACK))
    return pushed(workshop, lambda i, goal: {PARAMETER: scaled(goal, -WORTHLESS) if i in back else goal})


def reversed_late(workshop: Workshop) -> Forgery:
    """Pushes are taken back before the end, when training has carried the first ones further."""
    late = round(LATE * workshop.target.segments)
    return pushed(workshop, lambda i, goal: {PARAMETER: scaled(goal, 1.0 if i < late else -1.0)})


def undone(workshop: Workshop) -> Forgery:
    """Weights are pushed one way, and averages so that training takes it back: checkpoints are off, the end isn't."""
    moments = optimizer_twin(workshop.target)

    def plan(_segment: int, goal: Vector) -> Pushes:
        return {PARAMETER: goal, Component.OPTIMIZER: {moments[i]: part for i, part in goal.items()}}

    return pushed(workshop, plan)


def buffers(workshop: Workshop) -> Forgery:
    """Running statistics alone are pushed, in noise: they decide in evaluation, and no gradient answers."""
    target = workshop.target

    raised = unit({i: np.ones(target.task.initial_state[i].shape) for i in target.places(Component.BUFFER)})
    return pushed(workshop, lambda *_: {Component.BUFFER: mixed(raised, ALONG, noise(workshop, Component.BUFFER))})


def rate_creep(workshop: Workshop) -> Forgery:
    """Every segment goes a little further than it should: the rate rises within the tolerance."""
    target = workshop.target
    return pushed(workshop, lambda segment, _: {PARAMETER: unit(update(target, segment))})


def update(target: Target, segment: int) -> Vector:
    """What an honest segment does to the weights."""
    return difference(target, target.honest[segment], target.honest[segment + 1])


def furthest(target: Target, count: int) -> list[int]:
    """The segments in which the weights go furthest: what is allowed grows with the way."""
    ways = [length(update(target, i)) for i in range(target.segments)]
    return sorted(range(target.segments), key=lambda i: -ways[i])[:count]


def optimizer_twin(target: Target) -> dict[int, int]:
    """By parameter slot: the slot of its momentum or average."""
    names = target.task.names.slots
    return {
        i: next(names.index(f"{names[i]}:{key}") for key in MOMENTS if f"{names[i]}:{key}" in names)
        for i in target.places(PARAMETER)
    }


MOMENTS = ("momentum_buffer", "exp_avg")


def _has_buffers(target: Target) -> bool:
    return bool(target.places(Component.BUFFER))


ATTACKS = (
    Attack("drift-in-noise", "three fifths of each push are noise", in_noise, hides=True),
    Attack("drift-in-pairs", "the same, the noise taken back every second time", in_pairs, hides=True),
    Attack("drift-rotating", "the direction makes half a turn", rotating, hides=True),
    Attack("drift-by-slots", "one tensor after the other is pushed", by_slots, hides=True),
    Attack("drift-few", "only the ten longest segments are pushed", in_few, hides=True),
    Attack("drift-across", "weights and momentum take turns", across, hides=True),
    Attack("drift-counterweights", "some segments pushed back by nothing", counterweights, hides=True),
    Attack("drift-reversed", "pushes are taken back before the end", reversed_late, hides=True),
    Attack("drift-undone", "momentum takes each push back", undone, hides=True),
    Attack("drift-buffers", "running statistics in noise", buffers, hides=True, applies=_has_buffers),
    Attack("rate-creep", "every update longer by what is allowed", rate_creep, hides=True),
)
