"""Parameters from costs: what they follow, and what is said when there are none."""

from dataclasses import replace

import pytest

from pol.errors import ProtocolError
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import LONGEST_WINDOW, alternatives, design

pytestmark = pytest.mark.rules

UNIT = 10**18
NEEDS = Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100)


def changed(**needs: object) -> Needs:
    return replace(NEEDS, **needs)


def test_the_terms_are_within_the_bounds_of_the_market() -> None:
    found = design(NEEDS)
    stakes, windows = found.stakes, found.windows
    assert stakes.verifier_stake <= 16 * stakes.bond
    assert 2 * stakes.bond <= stakes.verifier_stake
    assert stakes.solver_stake // 2 >= stakes.verifier_fee
    assert 2 * stakes.jackpot * found.chance.watchers <= stakes.verifier_stake * found.chance.shares
    assert windows.exit_delay > max(windows.watch, windows.challenge) + windows.longest_dispute
    assert stakes.price + found.overhead <= NEEDS.task_value


def test_the_catch_pays_the_watch() -> None:
    found = design(NEEDS)
    assert found.game.rate * found.game.share > found.game.verification


def test_the_fewer_watches_until_pay_the_higher_the_rate() -> None:
    rates = [design(changed(paid_within=n, most_stake=1000 * UNIT)).chance.rate for n in (1, 12, 48, 2000)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == LARGEST_RATE
    assert rates[-1] == LEAST_RATE
    # Many draws: what bounds the stake are catches, not what buying the watchers is worth.
    stakes = [design(changed(paid_within=n)).stakes.verifier_stake for n in (8, 12)]
    assert stakes[0] < stakes[1]


def test_more_in_one_hand_takes_more_watchers() -> None:
    watchers = [design(changed(coalition=q, task_value=1000 * UNIT)).chance.watchers for q in (0.0, 0.25, 0.4, 0.5)]
    assert watchers == sorted(set(watchers))


def test_more_draws_lower_the_stake() -> None:
    dear = design(changed(capital=0.0, most_stake=1000 * UNIT))
    sure = design(changed(capital=0.0, most_stake=1000 * UNIT, detection=0.5))
    assert sure.stakes.draws > dear.stakes.draws
    assert sure.stakes.solver_stake < dear.stakes.solver_stake
    assert sure.detection >= 0.5


def test_a_cap_on_stakes_is_met_by_draws() -> None:
    found = design(NEEDS)
    assert found.stakes.solver_stake <= 2 * NEEDS.task_value
    dearer = design(changed(most_stake=300 * UNIT))
    assert 2 * NEEDS.task_value < dearer.stakes.solver_stake <= 300 * UNIT
    assert found.stakes.draws > dearer.stakes.draws
    assert found.pays > dearer.pays


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


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({"task_value": 20 * UNIT, "most_stake": 400 * UNIT}, "isn't worth training by strangers"),
        ({"most_stake": UNIT}, "allow a higher stake"),
        ({"detection": 0.999}, "use fewer, longer segments"),
        ({"segments": 1000}, "make segments longer"),
        ({"slowest": 400.0, "train_seconds": 100 * 86_400}, "make segments shorter"),
        ({"train_seconds": 300 * 86_400}, "make segments shorter"),
        ({"coalition": 0.7, "beacon_bits": 1}, "use a beacon that nobody can bias"),
        ({"coalition": 0.54}, "decides whose word counts"),
        ({"false_reject": 0.5, "cheat_fraction": 0.01, "cheat_gain": 0}, "draw more"),
        ({"capital": 2000.0}, "shorten the windows"),
    ],
)
def test_what_cannot_be_reached_is_said_with_what_to_change(needs: dict[str, object], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        design(changed(**needs))


@pytest.mark.parametrize(
    "needs",
    [
        {"task_value": 0}, {"cheat_gain": -1}, {"cheat_fraction": 0.0}, {"confidence": 1.0}, {"margin": 0.0},
        {"coalition": 0.99}, {"slowest": 0.5}, {"most_draws": 33}, {"beacon_bits": 7}, {"false_reject": 0.9},
        {"saved_by_one_lie": 1.5}, {"objectors": 1.5},
    ],
)  # fmt: skip
def test_numbers_without_sense_are_refused(needs: dict[str, object]) -> None:
    with pytest.raises(ProtocolError, match=next(iter(needs)).split("_")[0]):
        changed(**needs)


def test_clocks_fit_the_moves_of_the_slowest_party() -> None:
    """A side's moves fit twice into its clock with room for a restart, and single ones into the graces."""
    slow = {"side_seconds": 9000.0, "replay_seconds": 2000.0, "move_seconds": 700.0}
    least, found = design(NEEDS), design(changed(**slow))
    assert found.windows.clock == 4 * 4 * 9000 > least.windows.clock
    assert (found.windows.replay_grace, found.windows.move_grace) == (10_000, 3_500)
    assert least.windows.replay_grace == 1.25 * 4 * NEEDS.train_seconds / NEEDS.segments
    assert least.windows.move_grace == 300
    longer = 2 * (found.windows.clock - least.windows.clock)
    longer += 17 * (found.windows.replay_grace - least.windows.replay_grace)
    longer += 29 * (found.windows.move_grace - least.windows.move_grace)
    assert found.windows.longest_dispute - least.windows.longest_dispute == longer
    with pytest.raises(ProtocolError, match="all moves of one side"):
        design(changed(side_seconds=200_000.0))


def test_windows_fit_the_contract() -> None:
    assert design(changed(slowest=40.0)).windows.verification <= LONGEST_WINDOW
