"""The game: honesty is the best answer with the rules as they are, and each rule that is taken away tempts somebody."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.incentives import griefing
from lab.incentives.game_inputs import Threat, over_drawn, temptations
from lab.incentives.griefing import burn_ratio, burns, hostage
from lab.incentives.parameter_design import alternatives, design
from lab.incentives.payoffs import Game
from lab.incentives.task_needs import EXAMPLE as NEEDS
from lab.incentives.task_needs import Needs
from pol.claims.sample_size import detection_probability
from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.payouts import Deal, Payout

pytestmark = pytest.mark.rules

UNIT = 10**18
GAME = design(NEEDS).game
FEW_DRAWS = design(replace(NEEDS, most_stake=1000 * UNIT)).game
"""With a stake that deters what few draws find."""


def tempted(game: Game) -> set[str]:
    """Who doesn't lose by something else than its duty, and by what."""
    return {f"{c.role}: {action}" for c in game.choices() for action, value in c.others.items() if value >= c.honest}


def under(**threat: object) -> Game:
    return replace(GAME, threat=replace(GAME.threat, **threat))


def test_honesty_is_best_for_everybody() -> None:
    assert tempted(GAME) == set()
    assert {c.role for c in GAME.choices()} == {"solver", "verifier", "watcher", "challenger", "submitter", "coalition"}


def test_without_planted_errors_nobody_does_its_duty() -> None:
    """The verifier's dilemma: watching isn't paid, so guessing isn't found, so fabricating isn't either."""
    found = tempted(Game(None, replace(GAME.stakes, jackpot=0), GAME.costs, GAME.threat))
    assert {"watcher: sleep", f"solver: fabricate {GAME.stakes.segments}"} <= found
    assert "verifier: lie for a bribe, no work" in found


def test_one_lie_can_save_the_whole_training() -> None:
    """A solver jumps to a state that stands still, and all later segments are true: what stakes were once blind to."""
    blind = design(replace(NEEDS, saved_by_one_lie=0.0)).game
    assert tempted(blind) == set()
    collapsing = replace(blind, threat=replace(blind.threat, saved_by_one_lie=1.0))
    assert "solver: fabricate 1" in tempted(collapsing)
    solver = collapsing.solver()
    assert solver.others["fabricate 1"] > 4 * solver.honest
    # Only the segment of the jump is false.
    assert 1 - collapsing.misses[1] == pytest.approx(blind.stakes.draws / blind.stakes.segments)
    assert "solver: fabricate 1" not in tempted(GAME)


def test_each_lie_saves_what_one_can() -> None:
    quarter = under(saved_by_one_lie=0.25)
    assert [quarter.saved(k) for k in (1, 2, 4, 5, 100)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    blind = under(saved_by_one_lie=0.0)
    assert [blind.saved(k) for k in (1, 50, 100)] == [0.01, 0.5, 1.0]


@settings(max_examples=200, deadline=None)
@given(
    segments=st.integers(1, 60),
    saved=st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1)),
    gain=st.floats(0, 5),
    seeds=st.sampled_from([1, 2, 4, 64]),
    shield=st.floats(1, 4),
    data=st.data(),
)
def test_a_stake_that_deters_few_numbers_of_lies_deters_all(
    segments: int, saved: float, gain: float, seeds: int, shield: float, data: st.DataObject
) -> None:
    """Theorem 3: the least T for the numbers that it names is enough for every other, with seeds to choose from too."""
    draws = data.draw(st.integers(1, min(segments, 32)))
    least = data.draw(st.integers(1, segments))

    def needed(cheated: int) -> float:
        each = max(saved, 1 / segments)
        brings = min(1.0, cheated * each) + (gain if cheated >= least else 0)
        return brings * shield / float(detection_probability(segments, cheated, draws)) ** seeds

    total = max(map(needed, temptations(segments, least, saved)))
    assert max(map(needed, range(1, segments + 1))) <= total * (1 + 1e-9)


@pytest.mark.parametrize(
    ("threat", "temptation"),
    [
        ({"public_roots": True}, "watcher: guess the root"),
        ({"can_wait": True}, "watcher: wait for another's commitment"),
        ({"watchers_known": True}, "verifier: lie for a bribe, no work"),
        ({"catches_of_lies": False}, "challenger: stay silent"),
    ],
)
def test_each_rule_is_needed(threat: dict[str, bool], temptation: str) -> None:
    assert temptation in tempted(under(**threat))


def test_where_roots_are_public_verifiers_guess_too() -> None:
    assert f"verifier: guess {GAME.stakes.draws}" in tempted(under(public_roots=True))


@pytest.mark.parametrize(
    ("name", "part", "temptation"),
    [
        ("solver_stake", 2, "coalition: fabricate 1, serve friends only"),
        ("solver_stake", 4, "solver: fabricate 1"),
        ("verifier_stake", 40, "verifier: lie for a bribe"),
        ("jackpot", 2, "watcher: sleep"),
        ("verifier_fee", 2, "verifier: stay away"),
    ],
)
def test_too_little_at_stake_tempts(name: str, part: int, temptation: str) -> None:
    stakes = replace(FEW_DRAWS.stakes, **{name: getattr(FEW_DRAWS.stakes, name) // part})
    assert tempted(FEW_DRAWS) == set()
    assert temptation in tempted(replace(FEW_DRAWS, stakes=stakes))


def test_few_draws_tempt_to_buy_the_drawn_watchers() -> None:
    """A lie that is worth many catches: what covers being found without bribes doesn't cover it with them."""
    game = next(d for d in alternatives(replace(NEEDS, most_stake=1000 * UNIT)) if d.stakes.draws == 4).game
    assert tempted(game) == set()
    cheap = replace(game, stakes=replace(game.stakes, verifier_stake=220 * UNIT))
    buying = {"verifier: lie and buy the drawn watchers", "verifier: lie and buy the drawn watchers, no work"}
    assert tempted(cheap) == buying
    for choice in cheap.verifier():
        assert (
            500 * UNIT
            < choice.others["lie and buy the drawn watchers"]
            < choice.others["lie for a bribe"] + cheap.bribe()
        )
    # Whoever chooses among seeds takes the one with the fewest watchers.
    assert replace(cheap, threat=replace(cheap.threat, seeds=2)).silenced(cheap.bribe()) > cheap.silenced(cheap.bribe())


def test_silence_is_paid_as_the_loss_is_or_not_at_all() -> None:
    """By hand, for a draw of at most two: nobody drawn, one paid off, two that cost more than falling."""

    def worth(drawn: int) -> float:
        return (100.0, 30.0, -50.0)[min(drawn, 2)]

    none, one = exp(-0.5), 0.5 * exp(-0.5)
    assert over_drawn(0.5, 1, worth) == pytest.approx(100 * none + 30 * one - 50 * (1 - none - one))
    fewest = (1 - (1 - none) ** 2, (1 - none) ** 2 - (1 - none - one) ** 2, (1 - none - one) ** 2)
    assert over_drawn(0.5, 2, worth) == pytest.approx(sum(p * worth(k) for k, p in enumerate(fewest)))
    assert over_drawn(0.0, 1, worth) == 100.0
    assert over_drawn(40.0, 1, lambda drawn: 1.0) == pytest.approx(1.0)


def test_tickets_in_one_hand_share_a_replay() -> None:
    assert GAME.watching(1) == pytest.approx(GAME.watcher().honest)
    earned = [GAME.watching(hand) for hand in (1, 2, 7)]
    assert earned == sorted(set(earned))
    replays = GAME.watching(10**9) - GAME.watching(1)
    assert GAME.watching(2) == pytest.approx(GAME.watching(1) + replays / 2)


def test_the_fund_is_a_cheap_hostage_where_errors_are_rare() -> None:
    """What an idle task pays for a year of the jackpot is a part of R of it."""
    often, rare = (
        design(NEEDS),
        design(replace(NEEDS, paid_within=2000, most_stake=10_000 * UNIT, task_value=10_000 * UNIT)),
    )
    assert hostage(often).ratio > 1
    assert hostage(rare).ratio < 0.05
    for found in (often, rare):
        assert hostage(found).ratio == pytest.approx(0.625 * found.game.rate / found.needs.capital, rel=1e-6)


def test_one_hand_with_nearly_all_tickets_is_tempted() -> None:
    assert tempted(under(coalition=0.98)) >= {"coalition: reject an honest proof"}


def test_a_beacon_that_can_be_drawn_again_helps_who_cheats() -> None:
    """With k seeds to choose from a cheat is found with the k-th power of its probability."""
    once, twice = GAME, under(seeds=2)
    for cheated, missed in once.misses.items():
        assert 1 - twice.misses[cheated] == pytest.approx((1 - missed) ** 2)
    assert twice.seen() == pytest.approx(once.seen() ** 2)
    assert "solver: fabricate 1" in tempted(twice)


@given(st.integers(1, 60), st.data())
def test_misses_are_those_of_a_draw_without_replacement(segments: int, data: st.DataObject) -> None:
    draws = data.draw(st.integers(1, min(segments, 32)))
    stakes = replace(GAME.stakes, segments=segments, draws=draws)
    game = replace(GAME, stakes=stakes, threat=Threat(0, 1, 0.0))
    for cheated, missed in game.missed():
        assert missed == pytest.approx(float(1 - detection_probability(segments, cheated, draws)), abs=1e-12)


@given(st.integers(3, 80), st.data())
def test_detection_is_concave(segments: int, data: st.DataObject) -> None:
    """Theorem 3 rests on it: exactly, each fabricated segment more adds no more than the one before."""
    draws = data.draw(st.integers(1, min(segments, 32)))
    found = [detection_probability(segments, cheated, draws) for cheated in range(segments + 1)]
    steps = [after - before for before, after in pairwise(found)]
    assert all(later <= earlier for earlier, later in pairwise(steps))
    assert all(found[c] * segments >= c * Fraction(1) for c in range(segments + 1))


def test_the_worst_cheat_is_one_lie_or_the_least() -> None:
    values = {a: v for a, v in GAME.solver().others.items() if a.startswith("fabricate")}
    assert max(values.values()) == max(values["fabricate 1"], values[f"fabricate {NEEDS.least}"])
    blind = under(saved_by_one_lie=0.0).solver().others
    values = {a: v for a, v in blind.items() if a.startswith("fabricate")}
    ends = (1, NEEDS.least - 1, NEEDS.least, GAME.stakes.segments)
    assert max(values.values()) == max(values[f"fabricate {end}"] for end in ends)


def test_withholding_is_worse_than_any_disclosure() -> None:
    for choice in GAME.verifier():
        withheld = max(value for action, value in choice.others.items() if action.startswith("withhold"))
        assert withheld < choice.others["lie for a bribe"] < choice.honest


def test_every_attack_burns_ten_times_its_harm() -> None:
    assert len(burns(GAME)) == 8
    assert burn_ratio(GAME) >= 10


SHARES = st.floats(0.001, 1.0)


@settings(max_examples=25, deadline=None)
@given(
    value=st.integers(1, 10**6),
    replay=st.floats(0.05, 20),
    gain=st.floats(0, 30),
    segments=st.integers(2, 120),
    least=SHARES,
    coalition=st.floats(0, 0.6),
    bits=st.integers(0, 1),
    confidence=st.floats(0.6, 0.9999),
    margin=st.floats(0.01, 1),
    paid_within=st.integers(1, 500),
    capital=st.floats(0, 0.5),
    saved=st.one_of(st.just(1.0), st.floats(0, 1)),
    objectors=st.one_of(st.just(0.0), st.floats(0, 1)),
)
def test_wherever_design_finds_parameters_honesty_is_best(
    value: int,
    replay: float,
    gain: float,
    segments: int,
    least: float,
    coalition: float,
    bits: int,
    confidence: float,
    margin: float,
    paid_within: int,
    capital: float,
    saved: float,
    objectors: float,
) -> None:
    training = value * UNIT
    needs = Needs(
        100 * training,
        int(training * replay),
        int(training * gain),
        train_cost=training,
        segments=segments,
        cheat_fraction=least,
        coalition=coalition,
        beacon_bits=bits,
        confidence=confidence,
        margin=margin,
        paid_within=paid_within,
        capital=capital,
        saved_by_one_lie=saved,
        objectors=objectors,
        transaction=UNIT // 1000,
        dispute=UNIT // 100,
        train_seconds=7 * 86_400,
    )
    try:
        found = design(needs)
    except ProtocolError:
        return
    assert tempted(found.game) == set()
    assert burn_ratio(found.game) >= 10
    # Whatever price an auction leads to, cheating brings less than work.
    cheap = replace(found.game, stakes=replace(found.stakes, price=0)).solver()
    assert all(v <= cheap.honest + 1e-9 * training for a, v in cheap.others.items() if a.startswith("fabricate"))


def test_a_fund_that_gets_nothing_of_the_rest_is_drained_by_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(deal: Deal) -> Payout:
        paid = payouts.challenger_right(deal)
        return replace(paid, fund=0, treasury=paid.fund)

    monkeypatch.setattr(griefing, "payouts", SimpleNamespace(**{**vars(payouts), "challenger_right": without}))
    assert burn_ratio(GAME) < 10
