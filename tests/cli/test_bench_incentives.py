"""The figures of `pol bench incentives`: those that take seconds, all of them in the slow run; areas by name."""

from itertools import chain
from math import prod
from pathlib import Path

import pytest

from lab.benchmarks import incentive_grid
from lab.benchmarks.benchmark_areas import AREAS, PARTS
from lab.incentives.parameter_design import design
from lab.incentives.task_needs import Needs
from pol.claims.segment_draw import draw
from pol.incentives.abi import abi_hash
from pol.incentives.forced_errors import ONE, Assignment


def test_split_identities_and_false_bids_gain_nothing() -> None:
    assert incentive_grid.sybil_excess() == 0
    assert incentive_grid.false_bid_gain() == 0


POINTS = prod(len(values) for values in incentive_grid.GRID.values())


def test_the_grid_has_as_many_points_as_the_issue_asks_for() -> None:
    assert POINTS >= 1_000


def test_a_bit_of_the_beacon_is_worth_what_the_figures_say() -> None:
    """A proposer that can skip its slot takes the better of two seeds: 5,000 choices, three standard errors."""
    usual = design(Needs(10**20, 10**19, 10**19, transaction=10**15, dispute=10**16))
    rate, choices = round(usual.game.rate * ONE), 5_000
    forced = drawn = 0
    for number in range(choices):
        seeds = [abi_hash("seed", number, bit) for bit in (0, 1)]
        forced += any(Assignment(seed, bytes(32), 1, bytes(32)).is_forced(rate) for seed in seeds)
        stakes = usual.stakes
        drawn += all(min(draw(seed, stakes.segments, stakes.draws)) < usual.needs.least for seed in seeds)
    for found, figure in zip((forced, drawn), incentive_grid.biased(usual), strict=True):
        assert found / choices == pytest.approx(figure, abs=3 * (figure * (1 - figure) / choices) ** 0.5)


@pytest.mark.slow
def test_all_figures_keep_their_promises() -> None:
    figures = {name: figure.value for name, figure in AREAS["incentives"]().items()}
    assert figures["grid_points"] == POINTS, "a point without a design is left out"
    assert figures["honest_best_response_share"] == figures["withholding_worse_share"] == 1
    assert figures["least_margin"] > 0
    assert figures["attacker_burn_ratio"] >= 10
    assert figures["forced_error_rate_deviation"] <= 0.01
    assert figures["sybil_jackpot_excess_wei"] == figures["false_bid_gain_wei"] == 0
    assert figures["coalition_profit_max"] <= 0
    assert figures["reverted_rules_found"] == incentive_grid.RULES_AS_THEY_WERE


def test_what_measures_an_area_is_there() -> None:
    for part in chain.from_iterable(PARTS.values()):
        module, _, function = part.rpartition(".")
        assert f"\ndef {function}(" in Path(incentive_grid.__file__).with_name(f"{module}.py").read_text()
