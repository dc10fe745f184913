"""A whistleblower process alone: what it stakes on, what it is paid for, and what it leaves alone."""

from dataclasses import replace
from math import inf
from random import Random

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_verifier, next_of_whistleblower
from log_market import EXACT, JUMP, TOLERANT, Hidden, honest, jumped, not_drawn, sitting
from role_market import (
    OFFER,
    OFTEN,
    Town,
    acts,
    awarded,
    disclosed,
    done,
    gain,
    lied,
    profiled,
    seated,
    seated_with_duty,
    submitted,
)
from test_false_profiles import CHARGES, Liar

from lab.benchmarks.market_processes import live
from lab.benchmarks.role_drills import Erring
from pol.chain.desks.market import Matter
from pol.chain.desks.task_registry import Status
from pol.execution.executor import ExecutorFactory
from pol.execution.reference import ReferenceExecutor
from pol.roles.process import attention
from pol.roles.process.obligations import reading_seconds
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.process.work_time import verdict_steps
from pol.roles.whistleblower import second_opinion
from pol.roles.whistleblower.join_strategy import JoinStrategy
from pol.roles.whistleblower.objector import UnseenSegment
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


def misjudged(town: Town, draws: int = 1) -> tuple[bytes, list[int]]:
    """A task whose verdict lies about the first of the drawn segments, and these."""
    town.join(Verifier, "v")  # a ticket counts for seats that are opened later
    task_id = honest(town, replace(TOLERANT, draws=draws))
    verifier = sitting(town, task_id)
    verdicts = verifier.replay(task_id)
    first, *others = sorted(verdict.segment for verdict in verdicts)
    verifier.post(task_id, [lied(each, "distances") if each.segment == first else each for each in verdicts])
    disclosed(verifier, task_id)
    return task_id, [first, *others]


class Late(Whistleblower):
    """Its server shows something only at the second opinion."""

    hidden: Hidden | None = None

    def replayer(self, task_id: bytes, opinion: int) -> ExecutorFactory:
        if opinion and self.hidden:
            self.hidden.show()
            self.hidden = None
        return super().replayer(task_id, opinion)


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


def test_a_lie_about_what_a_server_hides_for_a_while_is_challenged(town: Town) -> None:
    """What had been unseen once was never looked at again, and the false verdict stood."""
    (task_id, (segment,)), watcher = misjudged(town), watching(town)
    process = Process(watcher, next_of_whistleblower)
    hidden = Hidden(town, watcher, task_id, segment + 1)
    process.turn()
    assert watcher.examined_twice(task_id).unseen == (UnseenSegment(segment, (segment + 1,)),)
    hidden.show()
    assert "challenge the verdict" in done([made for _ in range(4) for made in process.turn()])


def test_a_server_that_shows_now_this_and_now_that_hides_no_lie(town: Town) -> None:
    """It counted as two results of one replay: all was replayed twice again for each segment that a liar showed so."""
    (task_id, segments), watcher = misjudged(town, 2), town.join(Late, "w")
    watcher.strategy, watcher.hidden = AT_ANY_PRICE, Hidden(town, watcher, task_id, segments[1] + 1)
    assert acts(next_of_whistleblower(watcher, task_id)).verb == "challenge the verdict"


@pytest.mark.parametrize("knows", ["verdict", "log"])
def test_what_is_known_to_be_false_is_said_between_the_steps_of_another_look(
    town: Town, knows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the end of all looks that came first, whatever the window."""
    monkeypatch.setattr(attention, "LOOK", 0.0)
    town.join(Verifier, "v")
    other = honest(town, EXACT)
    task_id = misjudged(town)[0] if knows == "verdict" else jumped(town, EXACT)
    watcher = watching(town)
    if knows == "verdict":
        assert watcher.examined_twice(task_id).findings
    else:
        watcher.suspects(task_id)
        assert watcher.look(task_id, JUMP)
    watcher._suspects[watcher._log_of(other)] = (not_drawn(watcher, other)[0],)
    process = Process(watcher, next_of_whistleblower)
    monkeypatch.setattr(process, "tasks", lambda: [other])
    (taken,) = process.turn()
    assert (taken.verb, taken.result) == ("replay a segment", DecisionResult.DONE), taken
    desk = watcher.market.courts[Matter.VERDICT if knows == "verdict" else Matter.OBJECTION].desk
    assert len(desk.disputes(task_id)) == 1


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


def test_a_watch_goes_before_what_others_serve(town: Town) -> None:
    """A slow server of another task was read for days, and the watch passed."""
    watcher, verifier = watching(town), town.join(Verifier, "v")
    other, _ = submitted(town)
    task_id = proven(town, verifier)
    seated_with_duty(verifier, task_id, forced=False)
    verifier.verify(task_id)
    verifier.open_watch(task_id)
    assert reading_seconds(watcher, other) <= OFFER.watch_window / 2
    assert reading_seconds(watcher, task_id) == inf
    process = Process(watcher, next_of_whistleblower)
    assert [made.task_id for made in process.turn()] == [task_id, other]
    assert reading_seconds(watcher, other) == inf  # it has looked


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
