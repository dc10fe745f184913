"""Ballast: a parameter that goes far for nothing, and a solver that trains nothing within the limits of its way."""

from dataclasses import replace
from functools import cache

import pytest

from lab.attacks.attack_target import Target
from lab.attacks.ballast import ATTACKS, NAME, STILL, ballast_target, is_admitted, slack
from lab.attacks.verification_outcome import Findings, mount
from pol.verification.verdict.verdict import Reason

STEPS, INTERVAL = 60, 5


@cache
def target(weighed: bool = False, late: bool = False) -> Target:
    return replace(ballast_target(STEPS, INTERVAL, weighed, late), looks=0)


@cache
def findings(name: str, weighed: bool = False, late: bool = False) -> Findings:
    return mount(next(attack for attack in ATTACKS if attack.name == name), target(weighed, late))


def trained(found: dict[str, float]) -> dict[str, float]:
    """The slots that are trained."""
    return {name: value for name, value in found.items() if name != NAME}


@pytest.mark.parametrize("name", ["ballast-idle", "ballast-goal"])
@pytest.mark.parametrize("late", [False, True])
def test_limits_of_a_component_accept_a_training_of_nothing_and_each_slot_gives_it_away(name: str, late: bool) -> None:
    found = findings(name, late=late)
    assert not found.rejected
    assert found.found_by == {Reason.SLOT}
    assert sum(finding.is_apart for finding in found.segments) == len(found.cheated)
    assert not found.passes_exact
    assert found.cost == pytest.approx(STILL * INTERVAL / STEPS if late else 0)
    assert found.forgery.damage["accuracy lost"] > 0.3 or found.forgery.damage["back door"] > 0.3


def test_no_slot_but_the_ballast_has_a_limit_and_so_the_task_has_no_profile() -> None:
    assert min(trained(slack(target())).values()) > 1
    assert not is_admitted(target().task)


def test_weighed_by_their_noise_all_slots_have_a_limit() -> None:
    assert is_admitted(target(weighed=True).task)
    assert max(trained(slack(target(weighed=True))).values()) < 0.01
    for attack in ATTACKS:
        assert len(findings(attack.name, weighed=True).rejected) == len(findings(attack.name, weighed=True).cheated)


@pytest.mark.parametrize("weighed", [False, True])
def test_late_ballast_shows_in_no_profile_but_in_every_later_segment(weighed: bool) -> None:
    """Admission looks at the profiled segments alone."""
    goal = target(weighed, late=True)
    assert is_admitted(goal.task)
    for segment in range(STEPS // INTERVAL):
        found = slack(goal, segment)
        if segment < STILL:
            assert NAME not in found
            assert max(found.values()) < 0.01
        else:
            assert min(trained(found).values()) > 1
