"""What a solver can do within the tolerance, bounded; exact mode refuses all of it."""

from itertools import pairwise

import numpy as np
import pytest

from attack_tasks import ADAM, MLP, SEGMENTS, STEPS, Expected, check, findings, target
from lab.attacks.attack_target import State, Target, numbers
from lab.attacks.verification_outcome import limits
from lab.attacks.within_tolerance import ATTACKS, GRID, edge
from pol.graph.step_program import Component

EXPECTED = {
    "drift": Expected(1.0, SEGMENTS),
    "below-grid": Expected(1.0, SEGMENTS),
    "back-door": Expected(1.0, SEGMENTS - 1, ADAM),
    "back-door-plausible": Expected(1.0, SEGMENTS - 1, ADAM),
}
RATE, BETA, EPSILON = 2e-3, 0.9, 1e-8


def way(goal: Target, start: State, end: State) -> float:
    """How far the weights are apart."""
    places = goal.places(Component.PARAMETER)
    parts = (numbers(end[i]).astype(np.float64) - numbers(start[i]) for i in places)
    return float(np.sqrt(sum((part * part).sum() for part in parts)))


@pytest.mark.parametrize("name", EXPECTED)
def test_it_passes_the_tolerance_at_full_cost_and_fails_in_exact_mode(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


@pytest.mark.parametrize("kind", [MLP, ADAM])
def test_what_is_injected_is_at_most_the_threshold_times_the_way(kind: tuple[str, str]) -> None:
    """Drift <= threshold x segments, in each segment and in all."""
    goal = target(*kind)
    found = findings("drift", *kind)
    allowed = limits(goal)[0]
    injected = travelled = 0.0
    for segment, (start, end) in enumerate(pairwise(found.forgery.states)):
        replayed = goal.segment_end(start, segment)
        one, length = way(goal, replayed, end), way(goal, start, replayed)
        assert 0.5 * allowed * length < one <= allowed * length
        injected, travelled = injected + one, travelled + length
    assert injected <= allowed * travelled
    assert found.forgery.damage["injected, of the way"] <= allowed


def test_a_number_in_its_cell_moves_by_less_than_two_cells() -> None:
    values = np.array([0.0, 1e-13, -1e-13, 3e-6, -3e-6, 1.5, -1.5], np.float32)
    raised = edge(values, GRID)
    assert (np.trunc(raised.astype(np.float64) / GRID) == np.trunc(values.astype(np.float64) / GRID)).all()
    assert (raised >= values).all()
    assert (raised - values < 2 * GRID).all()
    assert (raised[:4] > values[:4]).all()


@pytest.mark.parametrize("kind", [MLP, ADAM])
def test_what_no_distance_sees_is_less_than_two_cells(kind: tuple[str, str]) -> None:
    found = findings("below-grid", *kind)
    assert 0 < found.forgery.damage["greatest move, in cells"] < 2
    assert all(segment.distances == (0.0, 0.0, 0.0) for segment in found.segments)


@pytest.mark.parametrize("name", ["back-door", "back-door-plausible"])
def test_a_weight_without_a_gradient_moves_by_no_more_than_adam_makes_of_its_average(name: str) -> None:
    goal = target(*ADAM)
    found = findings(name, *ADAM)
    slots = goal.task.names.slots
    weight, average, squares = (slots.index(f"hidden.weight{key}") for key in ("", ":exp_avg", ":exp_avg_sq"))
    dead = (goal.data()[0] == 0).all(dim=0).numpy()
    for segment, (start, end) in enumerate(pairwise(found.forgery.states)):
        first = segment * goal.interval + 1
        m, v = (np.abs(numbers(start[i])[:, dead]).astype(np.float64) for i in (average, squares))
        bound = sum(
            RATE
            * BETA**j
            * m
            / (1 - BETA ** (first + j - 1))
            / (np.sqrt(v * 0.999**j / (1 - 0.999 ** (first + j - 1))) + EPSILON)
            for j in range(1, goal.interval + 1)
        )
        decay = 1e-2 * RATE * goal.interval * np.abs(numbers(start[weight])[:, dead])
        moved = np.abs(numbers(end[weight])[:, dead] - numbers(start[weight])[:, dead])
        assert (moved <= 1.001 * bound + decay + 1e-7).all()
    assert SEGMENTS * goal.interval == STEPS


def test_the_trigger_is_set_by_the_attack_and_stays_far_below_the_threshold() -> None:
    found = findings("back-door", *ADAM)
    damage = found.forgery.damage
    assert damage["back door"] > 0.5 > damage["back door of the honest model"]
    worst = max(segment.distances[2] for segment in found.segments)
    assert worst < 0.25 * limits(target(*ADAM))[2]
