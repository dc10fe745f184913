"""A whistleblower meets all clocks beside many tasks, and floods of worthless disputes cost their authors more."""

import pytest

from lab.benchmarks.dispute_flood import challenges_flood, objections_flood
from lab.benchmarks.parallel_disputes import FULL, Setting, played
from pol.chain.deployment_rules import GameRules
from pol.roles.party.policy import TEST_NETWORK

FEW = Setting(12, 4, 0.25, TEST_NETWORK, clock=900, graces=GameRules(replay_grace=120, move_grace=120))


@pytest.mark.parametrize("setting", [FEW, pytest.param(FULL, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_no_clock_is_missed(setting: Setting) -> None:
    assert played(setting).lost == 0


@pytest.mark.long
@pytest.mark.parametrize("is_played", [True, False], ids=["played", "abandoned"])
def test_a_flood_of_objections_costs_its_author_more_and_wins_nothing(is_played: bool) -> None:
    flood = objections_flood(2, 4, is_played)
    assert (flood.disputes, flood.lost) == (8, 0)
    assert flood.attacker_bonds >= 2 * flood.own_income > 0
    assert flood.own_cost < 0 < flood.attacker_cost


@pytest.mark.long
def test_a_flood_of_challenges_costs_its_author_more_and_wins_nothing() -> None:
    flood = challenges_flood(4)
    assert (flood.disputes, flood.lost) == (4, 0)
    assert flood.own_cost < flood.attacker_cost
