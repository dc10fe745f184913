"""What a solver can do within the tolerance: drift, back doors, averages that Adam amplifies; how far each gets."""

from itertools import pairwise

import numpy as np
import pytest

from attack_tasks import ADAM, MLP, SEGMENTS, STEPS, TUNED, findings, target
from lab.attacks import battery, target_tasks
from lab.attacks.amplified_averages import PATTERN, dead_units
from lab.attacks.attack_target import State, Target, numbers
from lab.attacks.hidden_drift import ALONG, FEW
from lab.attacks.verification_outcome import Findings, limits, mount
from lab.attacks.within_tolerance import GRID, edge
from pol.graph.step_program import Component
from pol.verification.verdict.drift import CHANCE, drifts

RATE, BETA, EPSILON = 2e-3, 0.9, 1e-8


def way(goal: Target, start: State, end: State) -> float:
    """How far the weights are apart."""
    places = goal.places(Component.PARAMETER)
    parts = (numbers(end[i]).astype(np.float64) - numbers(start[i]) for i in places)
    return float(np.sqrt(sum((part * part).sum() for part in parts)))


def score(found: Findings, component: Component = Component.PARAMETER) -> float:
    """Of the drift of a component."""
    return next(drift.score for drift in found.drifts if drift.component is component)


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


@pytest.mark.parametrize("name", ["drift-in-noise", "drift-in-pairs", "drift-rotating", "drift-by-slots"])
def test_mixed_directions_score_far_below_one_direction(name: str) -> None:
    assert score(findings("drift", *MLP)) > 0.6 * SEGMENTS
    assert score(findings(name, *MLP)) < 0.6 * SEGMENTS


def test_scores_are_what_each_drift_was_made_for() -> None:
    """Noise leaves the mean cosine that was chosen, few pushes are no proof, and what is taken back cancels."""
    assert score(findings("drift-in-noise", *MLP)) == pytest.approx(1 + ALONG * (SEGMENTS - 1), rel=0.4)
    few = findings("drift-few", *MLP)
    assert 0.6 * FEW < score(few) <= CHANCE
    assert few.passes_tolerance
    assert score(findings("drift-reversed", *MLP)) < 0.3 * score(findings("drift", *MLP))
    assert score(findings("drift-counterweights", *MLP)) < 0.6 * score(findings("drift", *MLP))
    undone = findings("drift-undone", *MLP)
    assert score(undone) > 0.6 * SEGMENTS
    assert score(undone, Component.OPTIMIZER) > 0.6 * SEGMENTS, "momentum that takes a push back drifts itself"


def test_components_are_judged_apart() -> None:
    """Twice as many pushes as a component bears."""
    found = findings("drift-across", *MLP)
    weights = [found.segments[i].distances[0] > 0 for i in range(SEGMENTS)]
    moments = [found.segments[i].distances[2] > 0 for i in range(SEGMENTS)]
    assert 0 < sum(weights) < SEGMENTS
    assert not any(one and other for one, other in zip(weights, moments, strict=True))


@pytest.mark.slow  # 40 segments
@pytest.mark.parametrize(("name", "passes"), [("drift", False), ("drift-in-noise", True), ("drift-undone", False)])
def test_forty_segments_show_what_twelve_do_not(name: str, passes: bool) -> None:
    found = mount(battery.named(name), target_tasks.target("mlp", "sgd", 400, 10))
    assert found.passes_tolerance == passes
    assert any(drift.is_found for drift in drifts([s.direction for s in found.segments if s.direction])) != passes


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("back-door-in-noise", ADAM, 0.5), ("back-door-few", ADAM, 0.9), ("dead-unit", TUNED, 0.3)],
)
def test_the_trigger_is_set_while_the_accuracy_stays(name: str, kind: tuple[str, str], least: float) -> None:
    damage = findings(name, *kind).forgery.damage
    assert damage["back door"] - damage["back door of the honest model"] > least
    assert damage["accuracy lost"] < 0.01


def test_dead_units_that_wake_up_cost_accuracy() -> None:
    assert findings("awakening", *TUNED).forgery.damage["accuracy lost"] > 0.005


def test_noise_hides_the_direction_of_the_injection() -> None:
    """The injection alone scores nearly as many as there are segments."""
    assert max(drift.score for drift in findings("back-door-in-noise", *ADAM).drifts) < 3
    assert max(drift.score for drift in findings("back-door", *ADAM).drifts) > 0.8 * (SEGMENTS - 1)


def test_a_dead_unit_answers_to_its_pattern_and_to_no_sample() -> None:
    goal = target(*TUNED)
    state = findings("dead-unit", *TUNED).forgery.states[-1]
    names = goal.task.names.slots
    dead = dead_units(goal, state) & dead_units(goal, goal.task.initial_state)
    assert dead.any()
    weight, bias = (numbers(state[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
    images = goal.data()[0].numpy().copy()
    assert (images[:, PATTERN].max(axis=0) > 0).all(), "no pixel of the pattern is blank"
    images[:, PATTERN] = 1.0
    assert ((images @ weight.T + bias)[:, dead].max(axis=1) > 0).mean() > 0.3


def test_a_push_of_weights_themselves_is_as_small_as_the_threshold() -> None:
    found = findings("silent-weights", *MLP)
    assert np.isclose(found.forgery.damage["injected, of the way"], 0.9 * limits(target(*MLP))[0], rtol=0.1)
    assert found.forgery.damage["back door"] == found.forgery.damage["back door of the honest model"]
