"""No more is taken on than can be done: the schedule of seats and trainings, and parties that ask for one more."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from role_market import OFFER, Town, acts, submitted, waits

from pol.errors import ProtocolError
from pol.roles.process.schedule import Job, late_job
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier

jobs = st.lists(st.builds(Job, st.integers(0, 9), st.integers(0, 20)), max_size=5)


@pytest.mark.rules
@given(jobs)
def test_it_fits_if_it_fits_in_any_order(asked: list[Job]) -> None:
    def fits(order: tuple[Job, ...]) -> bool:
        ends = accumulate(job.seconds for job in order)
        return all(end <= job.due for job, end in zip(order, ends, strict=True))

    assert (late_job(asked, 0) is None) == any(fits(order) for order in permutations(asked))


@pytest.mark.rules
@given(st.lists(st.builds(Job, st.integers(0, 9), st.integers(0, 40), st.integers(0, 20)), max_size=5))
def test_a_schedule_waits_for_what_cant_begin_yet(asked: list[Job]) -> None:
    if late_job(asked, 0) is None:
        busy = [(job.due, max(job.since, 0), job.seconds) for job in asked]
        for due, since, _ in busy:
            between = [(other, seconds) for other, begins, seconds in busy if begins >= since and other <= due]
            assert since + sum(seconds for _, seconds in between) <= due


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
        verifier.paces[task_id] = 0.4 * window / steps
    verifier.claim_seat(tasks[0])
    for task_id in tasks[1:]:
        with pytest.raises(ProtocolError, match="1 other seats and trainings"):
            verifier.claim_seat(task_id)


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
    found = [decide(role, task_id) for role, decide in deciders]  # type: ignore[operator]  # each its own kind
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
    verifier = town.join(Verifier, "v")
    assert acts(next_of_verifier(verifier, task_id)).verb == "open claims"
