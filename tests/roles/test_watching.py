"""A whistleblower process alone: what it stakes on, what it is paid for, and what it leaves alone."""

from dataclasses import replace
from random import Random

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_verifier, next_of_whistleblower
from role_market import (
    OFFER,
    OFTEN,
    Town,
    awarded,
    disclosed,
    done,
    gain,
    profiled,
    seated,
    seated_with_duty,
    submitted,
)
from test_false_profiles import CHARGES, Liar

from lab.benchmarks.market_processes import live
from lab.benchmarks.role_drills import Erring
from pol.chain.desks.task_registry import Status
from pol.execution.reference import ReferenceExecutor
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.process.work_time import verdict_steps
from pol.roles.whistleblower import second_opinion
from pol.roles.whistleblower.join_strategy import JoinStrategy
from pol.roles.whistleblower.second_opinion import FLAKY
from pol.verification.profile.profile_challenge import ProfileCharge
from toy_market import ETHER

pytestmark = pytest.mark.long

MARKET_RULES, JOINED = OFTEN, ()
AT_ANY_PRICE = JoinStrategy(least=-ETHER)
"""The task is so small that gas costs more than half of a stake."""


def proven(town: Town, verifier: Verifier) -> bytes:
    """A task that this verifier has profiled and an honest solver trained."""
    task_id, _ = submitted(town)
    profiled(verifier, task_id)
    solver = town.join(Solver, "t")
    awarded(solver, task_id)
    solver.train(task_id)
    return task_id


def judged(town: Town, verifier: Verifier) -> bytes:
    """Such a task, with this verifier's verdict, which can be challenged."""
    task_id = proven(town, verifier)
    seated_with_duty(verifier, task_id, forced=False)
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    return task_id


def watching(town: Town) -> Whistleblower:
    watcher = town.join(Whistleblower, "w")
    watcher.strategy = AT_ANY_PRICE
    return watcher


@pytest.mark.parametrize("charge", [CHARGES[0], CHARGES[2]], ids=lambda charge: charge.kind.name)
def test_a_false_profile_costs_its_profiler_its_stake(town: Town, charge: ProfileCharge) -> None:
    watcher, liar = watching(town), town.join(Liar, "v")
    liar.charge = charge
    task_id, _ = submitted(town)
    seated(liar, task_id)
    liar.profile(task_id)
    profiles, stake = watcher.market.profiles, watcher.market.registry.terms(task_id).verifier_stake
    processes = [Process(watcher, next_of_whistleblower), Process(liar, next_of_verifier)]
    told = live(town.connection, processes, lambda: not profiles.standing(task_id).is_posted)
    assert done(told)[0] == "challenge the profile"
    assert not [made for made in told if made.result is DecisionResult.FAILED]
    assert gain(watcher, tickets=1) == stake // 2


def paid(watcher: Whistleblower, verifier: Verifier, task_id: bytes) -> None:
    """Both processes live until the planted error is paid."""
    registry, jackpot = watcher.market.registry, watcher.market.jackpot

    def over() -> bool:
        return registry.task(task_id).status is Status.CLOSED and gain(watcher, tickets=1) > 0

    told = live(
        watcher.connection, [Process(verifier, next_of_verifier), Process(watcher, next_of_whistleblower)], over
    )
    own = ("commit to an error", "challenge the verdict", "collect")
    assert [verb for verb in done(told) if verb in own] == ["commit to an error", "collect"]
    assert gain(watcher, tickets=1) == registry.terms(task_id).jackpot // int(jackpot.read("shares"))


def test_a_planted_error_is_committed_to_and_paid(town: Town) -> None:
    watcher, verifier = watching(town), town.join(Verifier, "v")
    task_id = proven(town, verifier)
    seated_with_duty(verifier, task_id, forced=True)
    verifier.verify(task_id)
    paid(watcher, verifier, task_id)
    # Nothing is left to do: with its memory gone it looks again, and does nothing twice.
    again = Process(watching(town), next_of_whistleblower)
    assert [made.verb for made in again.turn()] == ["wait"]


@pytest.mark.parametrize("broken", range(2))
def test_a_machine_that_errs_once_costs_no_stake(town: Town, broken: int) -> None:
    verifier, watcher = town.join(Verifier, "v"), town.join(Erring, "w")
    watcher.strategy, watcher.random, watcher._when = AT_ANY_PRICE, Random(7), (broken, 0)
    process, task_id = Process(watcher, next_of_whistleblower), judged(town, verifier)
    told = [taken for _ in range(8) for taken in process.turn()]
    if broken == 0:
        assert (told[0].result, told[0].detail) == (DecisionResult.FAILED, FLAKY)
    assert "replayed the same" in told[-1].why
    assert gain(watcher, tickets=1) == watcher.market.challenges.contested(task_id).challenges == 0


@pytest.mark.parametrize(("window", "shares_no_code"), [(24 * 3600, True), (300, False)])
def test_a_second_opinion_leaves_most_of_the_window(
    town: Town, window: int, shares_no_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a market of one machine the window passed while the reference executed, and the false verdict stayed."""
    watcher = watching(town)
    task_id, _ = submitted(town, replace(OFFER, challenge_window=window, draws=OFFER.steps // OFFER.interval))
    task, terms = watcher.task(task_id), watcher.market.registry.terms(task_id)
    monkeypatch.setattr(second_opinion, "REFERENCE_SPEED", task.document.work * verdict_steps(terms) / 60)
    executor = watcher.replayer(task_id, 1)(task.program, task.constants)
    assert isinstance(executor, ReferenceExecutor) is shares_no_code


def test_it_leaves_what_does_not_pay(town: Town) -> None:
    verifier, watcher = town.join(Verifier, "v"), watching(town)
    task_id = judged(town, verifier)
    watcher.strategy = JoinStrategy(work_cost=10**18)
    (made,) = Process(watcher, next_of_whistleblower).turn()
    assert made.result is DecisionResult.WAITED
    assert "examining doesn't pay" in made.why
    assert made.until == watcher.market.registry.task(task_id).deadline


def test_with_others_in_dispute_a_challenge_pays_less(town: Town) -> None:
    """The reward is one party's: with nine others a tenth of it is expected."""
    terms = town.join(Verifier, "v").market.registry.terms(submitted(town)[0])
    estimates = [JoinStrategy(loses=0).challenging(terms, terms.bond, others, 1) for others in (0, 9)]
    assert estimates[1].pay == estimates[0].pay // 10
    assert JoinStrategy(least=estimates[0].expected).refuses(estimates[0]) == ""
    assert "it wants" in JoinStrategy(least=estimates[0].expected + 1).refuses(estimates[0])
