"""Populations that play for money: what pays, what is found, and that no unit is lost."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean

import pytest

from pol.errors import ProtocolError
from pol.incentives.game.parameter_design import Needs, design
from pol.incentives.game.payoffs import CATCH_TRANSACTIONS, without_planted_errors
from pol.incentives.simulation.agents import Kind
from pol.incentives.simulation.population import Result, Setting, simulate

UNIT = 10**18
GAME = design(Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100)).game
OTHERS = (Kind.LAZY, Kind.COPYING, Kind.COLLUDING, Kind.SYBIL, Kind.GRIEFING, Kind.WITHHOLDING)


def play(verifiers: Mapping[Kind, int], solvers: Mapping[Kind, int], *, tasks: int = 150, watchers: int = 0) -> Result:
    return simulate(GAME, Setting(verifiers, solvers, watchers, tasks))


def earned(result: Result, kind: Kind) -> float:
    return fmean(result.earned(party) for party in result.parties if party.kind is kind)


def test_every_unit_that_is_lost_is_got_by_somebody() -> None:
    everybody = dict.fromkeys((Kind.HONEST, *OTHERS, Kind.RATIONAL), 2)
    kinds = (Kind.HONEST, Kind.LAZY, Kind.COLLUDING, Kind.RATIONAL)
    result = play(everybody, dict.fromkeys(kinds, 2), tasks=100, watchers=4)
    assert result.total_change == 0
    assert result.most_paid <= GAME.stakes.jackpot
    assert all(epoch.fund >= 0 and not epoch.fund_short for epoch in result.epochs)


def test_the_same_seed_gives_the_same_money() -> None:
    first, again = (play({Kind.HONEST: 3, Kind.LAZY: 1}, {Kind.RATIONAL: 2}, tasks=30, watchers=3) for _ in range(2))
    assert first.balances == again.balances
    assert first.epochs == again.epochs


@pytest.mark.parametrize("kind", [k for k in OTHERS if k is not Kind.SYBIL])
def test_honest_parties_earn_more_than(kind: Kind) -> None:
    solvers = {Kind.HONEST: 2, Kind.COLLUDING: 2}
    result = play({Kind.HONEST: 6, kind: 2}, solvers)
    assert earned(result, Kind.HONEST) > earned(result, kind)
    assert earned(result, Kind.HONEST) > 0


def test_splitting_brings_no_catch_more() -> None:
    """Tickets are drawn alike whoever holds them; eight accounts only pay for more transactions."""
    result = play({Kind.HONEST: 8, Kind.SYBIL: 8}, {Kind.HONEST: 2}, tasks=300)
    caught = {kind: sum(result.catches[p.name] for p in result.parties if p.kind is kind) for kind in Kind}
    assert caught[Kind.SYBIL] == pytest.approx(caught[Kind.HONEST], rel=0.2)
    assert result.total_change == 0


def test_who_copies_a_commitment_catches_nothing() -> None:
    result = play({Kind.HONEST: 6, Kind.COPYING: 3}, {Kind.HONEST: 2}, tasks=100)
    assert not any(result.catches.get(p.name) for p in result.parties if p.kind is Kind.COPYING)
    assert sum(result.catches.values()) > 0


@cache
def rational(*, planted: bool, tasks: int = 500) -> Result:
    game = GAME if planted else without_planted_errors(GAME)
    return simulate(game, Setting({Kind.RATIONAL: 16}, {Kind.RATIONAL: 8}, 10, tasks))


def test_the_verifiers_dilemma_comes_without_planted_errors_and_goes_with_them() -> None:
    without, with_ = rational(planted=False), rational(planted=True)
    assert without.last("watches", "drawn", 2) < 0.05
    assert without.last("lies", "seatings", 2) > 0.5
    assert without.last("lies_caught", "lies", 2) < 0.05
    assert without.last("fabricated", "tasks", 2) > 0.5
    assert with_.last("watches", "drawn", 2) > 0.9
    assert with_.last("lies", "seatings", 2) < 0.15
    assert with_.last("lies_caught", "lies", 10) > 0.95
    assert with_.last("fabricated", "tasks", 2) < 0.15


def test_whistleblowers_come_where_watching_pays_and_leave_where_it_does_not() -> None:
    with_, without = rational(planted=True), rational(planted=False, tasks=1000)
    assert with_.epochs[-1].enrolled > 0
    assert without.epochs[-1].enrolled == 0


def test_where_nobody_lies_those_watch_whose_machines_are_fast_enough() -> None:
    result = play({Kind.HONEST: 2}, {Kind.HONEST: 1}, tasks=500, watchers=8)
    enrolled = {p.pace: p.enrolled for p in result.parties if p.kind is Kind.WHISTLEBLOWER}
    prize = GAME.share - CATCH_TRANSACTIONS * GAME.costs.transaction
    assert enrolled == {pace: GAME.rate * prize > GAME.verification * pace for pace in enrolled}
    assert set(enrolled.values()) == {True, False}


@pytest.mark.slow
def test_rational_parties_stay_honest_for_long() -> None:
    result = rational(planted=True, tasks=8_000)
    assert result.total_change == 0
    assert result.last("lies_caught", "lies", 160) > 0.97
    assert result.last("watches", "drawn", 160) > 0.85
    assert all(not epoch.fund_short for epoch in result.epochs)


def test_a_population_that_settles_nothing_says_so() -> None:
    with pytest.raises(ProtocolError, match="settles nothing"):
        play({Kind.WITHHOLDING: 2}, {Kind.HONEST: 1}, tasks=1)


@pytest.mark.parametrize(
    ("verifiers", "solvers"),
    [
        ({}, {Kind.HONEST: 1}),
        ({Kind.HONEST: 1}, {}),
        ({Kind.WHISTLEBLOWER: 1}, {Kind.HONEST: 1}),
        ({Kind.HONEST: 1}, {Kind.GRIEFING: 1}),
        ({Kind.HONEST: -1}, {Kind.HONEST: 1}),
    ],
)
def test_nobody_is_no_population(verifiers: dict[Kind, int], solvers: dict[Kind, int]) -> None:
    with pytest.raises(ProtocolError):
        play(verifiers, solvers, tasks=1)
