"""Parameters from costs: they follow what a lie saves, who objects, and who holds the tickets."""

from dataclasses import replace

import pytest

from lab.incentives.parameter_design import alternatives, design
from lab.incentives.task_needs import EXAMPLE as NEEDS
from lab.incentives.task_needs import Needs

pytestmark = pytest.mark.rules

UNIT = 10**18


def changed(**needs: object) -> Needs:
    return replace(NEEDS, **needs)


def test_the_terms_are_within_the_bounds_of_the_market() -> None:
    found = design(NEEDS)
    stakes = found.stakes
    assert stakes.verifier_stake <= 16 * stakes.bond
    assert 2 * stakes.bond <= stakes.verifier_stake
    assert stakes.solver_stake // 2 >= stakes.verifier_fee
    assert 2 * stakes.jackpot * found.chance.watchers <= stakes.verifier_stake * found.chance.shares
    assert stakes.price + found.overhead <= NEEDS.task_value


def test_more_in_one_hand_takes_more_watchers() -> None:
    watchers = [design(changed(coalition=q, task_value=1000 * UNIT)).chance.watchers for q in (0.0, 0.25, 0.4, 0.5)]
    assert watchers == sorted(set(watchers))


def test_of_all_draws_those_that_cost_the_parties_least() -> None:
    every = alternatives(NEEDS)
    assert [d.stakes.draws for d in every] == list(range(1, 33))
    least = min(every, key=lambda d: d.pays)
    assert design(changed(most_stake=10_000 * UNIT)) == replace(least, needs=changed(most_stake=10_000 * UNIT))
    # Interest on the stake is part of it: where locking costs nothing, one draw is enough.
    assert least.stakes.draws > design(changed(most_stake=10_000 * UNIT, capital=0.0)).stakes.draws == 1


def test_what_one_lie_saves_is_what_the_stake_is_for() -> None:
    total = [
        design(changed(most_stake=10_000 * UNIT, capital=0.0, saved_by_one_lie=s, most_draws=1)).stakes
        for s in (0.0, 0.5, 1.0)
    ]
    stakes = [t.price + t.solver_stake for t in total]
    assert stakes[0] < stakes[1] < stakes[2]
    # One draw of a hundred, so a hundred trainings.
    assert stakes[2] > 100 * NEEDS.training


def test_objections_take_the_stake_from_a_hundred_trainings_towards_one() -> None:
    """A jump that saves everything is seen by whoever looks at the log, however few segments are drawn."""

    def trainings(objectors: float) -> float:
        free = {"most_stake": 10_000 * UNIT, "capital": 0.0, "most_draws": 1, "cheat_gain": 0, "coalition": 0.0}
        found = design(changed(objectors=objectors, **free))
        return (found.stakes.price + found.stakes.solver_stake) / NEEDS.training

    none, half, nearly, all_ = (trainings(v) for v in (0.0, 0.5, 0.99, 1.0))
    assert none > 100
    # Half of all jumps are seen: little more than two trainings; then what hides among the segments is dearest.
    assert half < 4
    assert nearly <= half
    assert all_ <= nearly


def test_a_beacon_bit_costs_stake() -> None:
    free = {"most_stake": 10_000 * UNIT, "task_value": 1000 * UNIT}
    bit, none = (design(changed(beacon_bits=bits, **free)) for bits in (1, 0))
    assert bit.one_lie_detection == pytest.approx((bit.stakes.draws / 100) ** 2)
    same = next(d for d in alternatives(none.needs) if d.stakes.draws == bit.stakes.draws)
    assert bit.stakes.solver_stake > 2 * same.stakes.solver_stake


def test_exact_mode_pays_no_profiler_and_rejects_no_honest_work() -> None:
    exact, tolerant = design(changed(exact=True)), design(NEEDS)
    assert exact.pays < tolerant.pays
    assert exact.game.deal.escrow - exact.game.deal.bidding_escrow == 0 < tolerant.stakes.verifier_fee
    assert exact.game.threat.false_reject == 0 < tolerant.game.threat.false_reject
    # Whoever guesses is as wrong as in tolerant mode: nobody knows the receipt without a replay.
    for choice in exact.game.choices():
        assert choice.margin > 0, choice
