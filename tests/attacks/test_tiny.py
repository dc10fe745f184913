"""Updates too small to see (Fang et al. 2023): a relative distance sees them, and the draw isn't by size."""

from itertools import pairwise

import numpy as np
import pytest

from attack_tasks import INTERVAL, SEGMENTS, Expected, check, findings, target
from lab.attacks.attack_target import State, numbers
from lab.attacks.tiny_updates import ATTACKS
from pol.graph.step_program import Component

EXPECTED = {
    # One step of each segment but the first, which jumps.
    "infinitesimal": Expected((SEGMENTS - 1) / SEGMENTS / INTERVAL, SEGMENTS),
    "blindfold-top-q": Expected(1 / SEGMENTS, SEGMENTS - 1),
    "dodge-top-q": Expected((SEGMENTS - 1 + 1 / INTERVAL) / SEGMENTS, 1),
}


def moved(start: State, end: State) -> float:
    """How far the weights went."""
    places = target().places(Component.PARAMETER)
    return float(np.sqrt(sum(np.square(numbers(end[i]) - numbers(start[i])).sum() for i in places)))


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_rejected(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


def test_the_updates_are_tiny_beside_honest_ones() -> None:
    states = findings("infinitesimal").forgery.states
    honest = target().honest
    for segment in range(1, SEGMENTS):
        assert 0 < moved(states[segment], states[segment + 1]) < 1e-3 * moved(honest[segment], honest[segment + 1])


def test_a_verifier_of_the_greatest_updates_would_miss_it() -> None:
    found = findings("dodge-top-q")
    states = found.forgery.states
    lengths = [moved(a, b) for a, b in pairwise(states)]
    assert found.cheated == [int(np.argmin(lengths))]
