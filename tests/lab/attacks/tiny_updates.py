"""Updates too small to be seen by an absolute threshold, or by a verifier that looks at the greatest updates."""

from itertools import pairwise

import numpy as np

from lab.attacks.attack_target import Floats, State, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.synthetic_data import between
from pol.graph.step_program import Component

FANG = "Fang et al. 2023, arXiv:2208.03567"
RATE = np.float32(1e-4)
"""An infinitesimal update's share of a real one."""
TOP = 0.1
"""Share of segments that are trained honestly, because a top-q verifier looks at the greatest updates."""


def infinitesimal(workshop: Workshop) -> Forgery:
    """The stolen model from the first checkpoint on; one real step per segment, scaled down to nearly nothing."""
    target = workshop.target
    state = workshop.ticked(target.stolen[-1], target.interval - target.task.document.steps)
    states = [workshop.start, state]
    for segment in range(1, target.segments):
        states.append(creep(workshop, states[-1], segment))
    return Forgery(states)


def top_q(workshop: Workshop) -> Forgery:
    """Honest where updates are greatest, at the start; the rest creeps, but for one jump to the stolen model."""
    target = workshop.target
    honest = max(1, round(TOP * target.segments))
    states = [workshop.start]
    for segment in range(honest):
        states.append(workshop.segment(states[-1], segment))
    if honest < target.segments:
        rest = target.segments - honest
        states += between(workshop, states[-1], target.stolen[-1], rest)[1:]
    return Forgery(states)


def dodging(workshop: Workshop) -> Forgery:
    """Trains all segments but those with the smallest updates, which creep: a top-q verifier never looks there."""
    target = workshop.target
    ways = [
        sum(float(np.square(numbers(b[i]) - numbers(a[i])).sum()) for i in target.places(Component.PARAMETER))
        for a, b in pairwise(target.honest)
    ]
    smallest = set(np.argsort(ways)[: max(1, round(TOP * target.segments))].tolist())
    states = [workshop.start]
    for segment in range(target.segments):
        skipped = segment in smallest
        states.append(creep(workshop, states[-1], segment) if skipped else workshop.segment(states[-1], segment))
    return Forgery(states)


def creep(workshop: Workshop, state: State, segment: int) -> State:
    """A segment of which only one step is trained, and added scaled down to nearly nothing."""
    target = workshop.target
    moved = workshop.train(state, segment * target.interval, 1)

    def scaled(place: int, values: Floats) -> Floats:
        small: Floats = values + (numbers(moved[place]) - values) * RATE
        return small

    return workshop.ticked(workshop.with_numbers(state, scaled))


ATTACKS = (
    Attack("infinitesimal", "jump to a stolen model, then updates of next to nothing", infinitesimal, FANG),
    Attack("blindfold-top-q", "honest where a top-q verifier looks, a line to a stolen model elsewhere", top_q, FANG),
    Attack("dodge-top-q", "skips the 10 % of segments that move least", dodging, "Jia et al. 2021, arXiv:2103.05633"),
)
