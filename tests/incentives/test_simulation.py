"""Populations that play for money: what pays, what is found, and that no unit is lost."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from statistics import fmean

import pytest

from lab.simulations.agents import Behavior
from lab.simulations.population import Population, SimulationResult, simulate
from pol.errors import ProtocolError
from pol.incentives.game.game_inputs import CATCH_TRANSACTIONS
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import design
from pol.incentives.game.payoffs import without_planted_errors

UNIT = 10**18
NEEDS = Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100)
GAME = design(NEEDS).game
OTHERS = (Behavior.LAZY, Behavior.COPYING, Behavior.COLLUDING, Behavior.SYBIL, Behavior.GRIEFING, Behavior.WITHHOLDING)


def play(
    verifiers: Mapping[Behavior, int], solvers: Mapping[Behavior, int], *, tasks: int = 150, watchers: int = 0
) -> SimulationResult:
    return simulate(GAME, Population(verifiers, solvers, watchers, tasks))


def earned(result: SimulationResult, kind: Behavior) -> float:
    return fmean(result.earned(party) for party in result.parties if party.kind is kind)


def test_every_unit_that_is_lost_is_got_by_somebody() -> None:
    everybody = dict.fromkeys((Behavior.HONEST, *OTHERS, Behavior.RATIONAL), 2)
    kinds = (Behavior.HONEST, Behavior.LAZY, Behavior.COLLUDING, Behavior.RATIONAL)
    result = play(everybody, dict.fromkeys(kinds, 2), tasks=100, watchers=4)
    assert result.total_change == 0
    assert result.most_paid <= GAME.stakes.jackpot
    assert all(epoch.fund >= 0 and not epoch.fund_short for epoch in result.epochs)


def test_the_same_seed_gives_the_same_money() -> None:
    first, again = (
        play({Behavior.HONEST: 3, Behavior.LAZY: 1}, {Behavior.RATIONAL: 2}, tasks=30, watchers=3) for _ in range(2)
    )
    assert first.balances == again.balances
    assert first.epochs == again.epochs


@pytest.mark.parametrize("kind", [k for k in OTHERS if k is not Behavior.SYBIL])
def test_honest_parties_earn_more_than(kind: Behavior) -> None:
    solvers = {Behavior.HONEST: 2, Behavior.COLLUDING: 2}
    result = play({Behavior.HONEST: 6, kind: 2}, solvers)
    assert earned(result, Behavior.HONEST) > earned(result, kind)
    assert earned(result, Behavior.HONEST) > 0


def test_splitting_brings_no_catch_more() -> None:
    """Tickets are drawn alike whoever holds them; eight accounts only pay for more transactions."""
    result = play({Behavior.HONEST: 8, Behavior.SYBIL: 8}, {Behavior.HONEST: 2}, tasks=300)
    caught = {kind: sum(result.catches[p.name] for p in result.parties if p.kind is kind) for kind in Behavior}
    assert caught[Behavior.SYBIL] == pytest.approx(caught[Behavior.HONEST], rel=0.2)
    assert result.total_change == 0


def test_who_copies_a_commitment_catches_nothing() -> None:
    result = play({Behavior.HONEST: 6, Behavior.COPYING: 3}, {Behavior.HONEST: 2}, tasks=100)
    assert not any(result.catches.get(p.name) for p in result.parties if p.kind is Behavior.COPYING)
    assert sum(result.catches.values()) > 0


@cache
def rational(*, planted: bool, tasks: int = 500) -> SimulationResult:
    game = GAME if planted else without_planted_errors(GAME)
    return simulate(game, Population({Behavior.RATIONAL: 16}, {Behavior.RATIONAL: 8}, 10, tasks))


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
    result = play({Behavior.HONEST: 2}, {Behavior.HONEST: 1}, tasks=500, watchers=8)
    enrolled = {p.pace: p.enrolled for p in result.parties if p.kind is Behavior.WHISTLEBLOWER}
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
        play({Behavior.WITHHOLDING: 2}, {Behavior.HONEST: 1}, tasks=1)


@pytest.mark.parametrize(
    ("verifiers", "solvers"),
    [
        ({}, {Behavior.HONEST: 1}),
        ({Behavior.HONEST: 1}, {}),
        ({Behavior.WHISTLEBLOWER: 1}, {Behavior.HONEST: 1}),
        ({Behavior.HONEST: 1}, {Behavior.GRIEFING: 1}),
        ({Behavior.HONEST: -1}, {Behavior.HONEST: 1}),
    ],
)
def test_nobody_is_no_population(verifiers: dict[Behavior, int], solvers: dict[Behavior, int]) -> None:
    with pytest.raises(ProtocolError):
        play(verifiers, solvers, tasks=1)


def test_objectors_keep_solvers_honest_with_a_stake_near_one_training() -> None:
    """The stake that a design asks for when outsiders look: without them it invites a jump in most tasks."""
    game = design(replace(NEEDS, objectors=0.99)).game
    assert game.stakes.solver_stake < 5 * game.costs.training
    blind = replace(game, threat=replace(game.threat, objectors=0.0))
    seen, unseen = (
        simulate(each, Population({Behavior.RATIONAL: 16}, {Behavior.RATIONAL: 8}, 10, tasks=300))
        for each in (game, blind)
    )
    assert seen.last("fabricated", "tasks", 4) < 0.15
    assert unseen.last("fabricated", "tasks", 4) > 0.5
    assert seen.total_change == unseen.total_change == 0
