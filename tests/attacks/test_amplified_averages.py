"""What Adam makes of averages that nobody sees: back doors and sabotage that only pairs of segments give away."""

import numpy as np
import pytest

from attack_tasks import ADAM, MLP, SEGMENTS, Expected, check, findings, target
from lab.attacks.amplified_averages import ATTACKS, PATTERN, dead_units
from lab.attacks.attack_target import numbers
from lab.attacks.hidden_drift import FEW
from lab.attacks.verification_outcome import limits
from pol.verification.verdict.verdict import Reason

TUNED = ("tuned", "adamw")
EXPECTED = {
    "back-door-in-noise": Expected(1.0, SEGMENTS - 1, ADAM),
    "back-door-few": Expected(1.0, FEW, ADAM),
    "dead-unit": Expected(1.0, SEGMENTS - 1, TUNED),
    "awakening": Expected(1.0, SEGMENTS - 1, TUNED),
    "averages-in-noise": Expected(1.0, SEGMENTS, ADAM),
    "silent-weights": Expected(1.0, SEGMENTS, MLP),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_shows_where_the_replay_goes_on_from_its_own_state(name: str) -> None:
    """Each segment is accepted by itself; what a checkpoint hides becomes whole weights in the next one."""
    found = check(ATTACKS, name, EXPECTED)
    assert found.found_by == (set() if name == "silent-weights" else {Reason.PAIR})


@pytest.mark.parametrize(("name", "least"), [("back-door-in-noise", 0.5), ("back-door-few", 0.9), ("dead-unit", 0.3)])
def test_the_trigger_is_set_while_the_accuracy_stays(name: str, least: float) -> None:
    damage = findings(name, *EXPECTED[name].on).forgery.damage
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
