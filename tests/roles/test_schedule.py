"""No more is taken on than can be done: the schedule of seats and trainings, and parties that ask for one more."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, permutations
from math import inf
from random import Random

import pytest
from all_parties import Solver, Submitter, Verifier, next_of_solver, next_of_submitter, next_of_verifier
from hypothesis import given
from hypothesis import strategies as st
from role_market import EXACT, OFFER, Town, acts, disclosed, seated_with_duty, submitted, until_proof, waits

from pol.arithmetic.primitives import Words
from pol.chain.desks.task_registry import Status
from pol.errors import ProtocolError
from pol.execution.cpu import on_all_cores
from pol.execution.executor import Executor
from pol.graph.step_program import StepProgram
from pol.roles.party.evidence import attentive
from pol.roles.process import attention, schedule
from pol.roles.process.obligations import reading_seconds
from pol.roles.process.schedule import Job, late_job

jobs = st.lists(st.builds(Job, st.integers(0, 9), st.integers(0, 20)), max_size=5)


@pytest.mark.rules
@given(jobs)
def test_it_fits_if_it_fits_in_any_order(asked: list[Job]) -> None:
    def fits(order: tuple[Job, ...]) -> bool:
        ends = accumulate(job.seconds for job in order)
        return all(end <= job.due for job, end in zip(order, ends, strict=True))

    assert (late_job(asked, 0) is None) == any(fits(order) for order in permutations(asked))


@pytest.mark.rules
def test_it_holds_whenever_others_let_the_work_begin() -> None:
    """Each piece of work is done at one go, and the first deadline of what may begin decides which is next."""
    random = Random(7)
    for _ in range(3000):
        coming = [Job(random.randrange(1, 9), window=random.randrange(4, 30)) for _ in range(random.randrange(1, 4))]
        held = [Job(random.randrange(1, 9), random.randrange(4, 40)) for _ in range(random.randrange(3))]
        left, now = [(job, random.randrange(30)) for job in coming] + [(job, 0) for job in held], 0.0
        while left and late_job((*coming, *held), 0) is None:
            now = max(now, min(since for _, since in left))
            ready = [(min(job.due, since + job.window), n) for n, (job, since) in enumerate(left) if since <= now]
            due, number = min(ready)
            now += left.pop(number)[0].seconds
            assert now <= due


@pytest.mark.rules
@given(jobs, st.builds(Job, st.integers(0, 9), st.integers(0, 20)), st.integers(0, 9))
def test_less_work_never_fits_worse_and_later_never_better(asked: list[Job], more: Job, now: int) -> None:
    if late_job([*asked, more], now) is None:
        assert late_job(asked, now) is None
    if late_job(asked, now) is not None:
        assert late_job(asked, now + 1) is not None


@pytest.mark.long
def test_a_verifier_claims_no_more_seats_than_it_can_fill(town: Town) -> None:
    """Each takes two fifths of its window: the second is left alone while the first is only claimed."""
    tasks = [submitted(town, replace(OFFER, verification_window=3600))[0] for _ in range(3)]
    verifier = town.join(Verifier, "v")
    window = verifier.market.registry.terms(tasks[0]).verification_window
    for task_id in tasks:
        terms = verifier.market.registry.terms(task_id)
        steps = terms.profiled * (terms.rerun_count + 1) * terms.interval
        verifier.times.paces[task_id] = 0.4 * window / steps
    verifier.claim_seat(tasks[0])
    for task_id in tasks[1:]:
        with pytest.raises(ProtocolError, match="1 other seats and trainings"):
            verifier.claim_seat(task_id)


@pytest.mark.long
def test_a_verdict_that_takes_longer_than_it_should_costs_no_other_seat(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an hour a step, and an hour to disclose another verdict; a killed process is followed by a new one."""
    monkeypatch.setattr(attention, "LOOK", 0.0)
    first, second = (until_proof(town, replace(EXACT, watch_window=3600)) for _ in range(2))
    verifier = town.join(Verifier, "v")
    for task_id in (first, second):
        seated_with_duty(verifier, task_id, forced=False)
    verifier.verify(first)
    verifier.open_watch(first)
    verifier = town.join(Verifier, "v")
    market, connection = verifier.market, verifier.connection

    def slow(program: StepProgram, constants: Sequence[Words]) -> Executor:
        return attentive(on_all_cores, lambda: connection.wait_until(connection.now() + 1800))(program, constants)

    verifier.times.executors = slow
    connection.wait_until(market.verdicts.verdict(first).watch_until - 60)
    acts(next_of_verifier(verifier, second)).act()
    assert market.verdicts.verdict(second).watch_round
    assert market.registry.task(first).status is Status.CONTESTED


@pytest.mark.long
def test_one_model_from_a_slow_server_leaves_time_to_demand_another(town: Town) -> None:
    """A submitter pays for what it hasn't demanded before the verdict is settled."""
    first, second = (until_proof(town, EXACT) for _ in range(2))
    verifier, submitter = town.join(Verifier, "v"), town.join(Submitter, "s")
    assert reading_seconds(submitter, second) == inf
    seated_with_duty(verifier, first, forced=False)
    verifier.verify(first)
    disclosed(verifier, first)
    left = submitter.market.registry.task(first).deadline - town.connection.now()
    assert reading_seconds(submitter, second) == left / 2
    assert reading_seconds(submitter, first) == inf


@pytest.mark.long
def test_a_training_that_this_party_will_win_counts_before_and_after_the_reveal(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (submitted(town, EXACT)[0] for _ in range(2))
    solver, pace = town.join(Solver, "t"), 0.4 * 24 * 3600 / EXACT.steps
    solver._rehearsed.update(dict.fromkeys((first, second), pace))
    solver.times.paces.update(dict.fromkeys((first, second), 1.0))
    solver.bid(first)
    with town.connection.cached():
        assert "1 other seats and trainings" in waits(next_of_solver(solver, second))
        with monkeypatch.context() as patch:  # worked out once a block, however many tasks are open
            patch.delattr(schedule, "begun_tasks")
            assert "1 other seats and trainings" in waits(next_of_solver(solver, second))
    solver.reveal(first)
    again, _ = submitted(town, EXACT)
    solver._rehearsed[again] = pace
    assert "1 other seats and trainings" in waits(next_of_solver(solver, again))


@pytest.mark.long
def test_a_seat_that_this_party_cant_take_costs_it_no_gas(town: Town) -> None:
    """Round after round would be opened for nobody; what is missing is said with the command that mends it."""
    task_id, submitter = submitted(town)
    poor, bare = town.join(Verifier, "poor"), town.join(Verifier, "bare")
    poor.market.vault.withdraw(poor.wallet, poor.market.vault.free(poor.wallet.address) - 7)
    bare.market.sortition.resign(bare.wallet, 1)
    town.connection.wait_for_block(poor.market.seats.seating(task_id).round + 1)
    missing = poor.market.registry.terms(task_id).verifier_stake - 7
    deciders = ((poor, next_of_verifier), (bare, next_of_verifier), (submitter, next_of_submitter))
    found = [decide(role, task_id) for role, decide in deciders]  # type: ignore[arg-type]  # each its own kind
    assert [getattr(decision, "mend", None) for decision in found] == [
        f"pol stake deposit {missing}wei",
        "pol stake enrol",
        "",
    ]
    assert f"lack {missing} wei of free money in the vault: `pol stake deposit {missing}wei` mends it" in waits(
        found[0]
    )
    assert "left to those that wait for it (open claims)" in waits(found[2])
    # Who has both opens the seat, and claims it before its time is over.
    assert acts(next_of_verifier(town.join(Verifier, "v"), task_id)).verb == "open claims"
