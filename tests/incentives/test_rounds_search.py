"""The searches over settlements and floods: each rule as it was has an exploit, and the rules as decided have none."""

import pytest

from lab.incentives import flood_search
from lab.incentives.rounds_search import REVERTED, StakedPlan, reverted_of_rounds, worst_of_rounds

pytestmark = pytest.mark.rules

EXPLOITS = {
    "the first payment fixes the total": ("count what isn't its own", {"submitter", "worker"}),
    "settlements open together": ("let it fall, and sign for a friend", {"coordinator", "worker"}),
    "a unit may be paid any price": ("stop the rounds, count a claim at a time", {"coordinator", "worker"}),
    "a coordinator's fall returns the pay": ("let the coordinator fall", {"submitter", "coordinator"}),
    "a coordinator stakes two pays": ("let it fall, and sign for a friend", {"coordinator", "worker"}),
    "a text of no kind makes authors": ("count copies by a text that is no roster", {"coordinator", "worker"}),
    "an answer is paid at once": ("show a false source at last", {"worker"}),
    "who has gone signs on": ("go on from what a member that has gone has made up", {"coordinator", "worker"}),
}


def test_nothing_pays_on_the_rules_as_decided() -> None:
    assert worst_of_rounds().excess <= 0


def test_each_rule_as_it_was_has_an_exploit() -> None:
    found = reverted_of_rounds()
    assert set(found) == set(REVERTED) == set(EXPLOITS)
    for name, (move, members) in EXPLOITS.items():
        assert move in found[name].solution.deviations.values(), name
        assert members <= set(found[name].coalition.members.split(", ")), name


def test_a_fall_brings_what_it_brought_with_the_contracts() -> None:
    """All pay of others for fifteen sixteenths of the stake, a sixteenth of which a friend has saved."""
    plan, found = StakedPlan(), reverted_of_rounds()["a coordinator's fall returns the pay"]
    unpaid = plan.settlements * plan.pay * plan.others // plan.work
    lost = 3 * plan.pay * 15 // 16
    duty = found.coalition.worker * (plan.settlements * plan.claim * (plan.pay // plan.work - plan.cost))
    assert found.excess == pytest.approx(unpaid - lost - duty, rel=1e-9)


def test_no_flood_pays_on_the_rules_as_decided_and_one_on_each_as_it_was() -> None:
    assert flood_search.worst_flood().profit < 0
    assert flood_search.reverted_of_floods().keys() == flood_search.REVERTED.keys()
