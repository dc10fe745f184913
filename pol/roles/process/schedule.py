"""A party's schedule: all that it has taken on has to be done before each deadline, and what it asks for next too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from pol.chain.desks.task_registry import Status
from pol.errors import ProtocolError
from pol.roles.party.role import Role
from pol.roles.process.obligations import MARGIN, begun_tasks
from pol.roles.process.work_time import profile_steps, seconds_for, verdict_steps

PATIENCE = 1.5
"""Factor on the time of a training's steps, for checkpoints, transactions and other work."""


@dataclass(frozen=True)
class Job:
    """Work of so many seconds that has to end by second ``due``, and can't begin before second ``since``."""

    seconds: float
    due: float
    since: float = 0


def late_job(jobs: Iterable[Job], now: float, outage: float = 0) -> Job | None:
    """A job that ends late, if all are done one after another from ``now`` on, in the order of deadlines.

    The chain may halt for ``outage`` seconds.

    Of jobs that may begin now: if there is any order in which none is late, none is late in this one.
    """
    end = now
    for job in sorted(jobs, key=lambda each: each.due):
        end = max(end, job.since) + job.seconds
        if end + outage > job.due:
            return job
    return None


def require_schedule(role: Role, task_id: bytes, job: Job, pace: Callable[[bytes], float] | None = None) -> None:
    """Check that a job about a task fits beside all seats and trainings that this party holds, claims and bids for.

    ``pace`` gives the seconds of a training's step here; by default those of a replay.

    Raises:
        ProtocolError: some of it would be late; leave the task alone.
        OperationalError: the node or the store failed.
    """
    step = pace or (lambda other: seconds_for(role, other, 1, inf))
    others = [each for other in begun_tasks(role) if other != task_id for each in _jobs(role, other, step)]
    if late_job([*others, job], role.connection.now(), role.policy.outage) is not None:
        raise ProtocolError(
            f"the work takes this machine about {job.seconds:.0f} s, and {len(others)} other seats and trainings of "
            f"this party, held, claimed or bid for, take about {sum(each.seconds for each in others):.0f} s: not all "
            "would end in time. Leave the task alone until some are done, or use another key on another machine"
        )


def _jobs(role: Role, task_id: bytes, pace: Callable[[bytes], float]) -> Iterator[Job]:
    """What this party has still to do about a task for a stake that it has locked."""
    market, own = role.market, role.wallet.address
    task, terms = market.registry.task(task_id), market.registry.terms(task_id)
    steps, since, due = 0, 0, task.deadline
    if task.status in (Status.PROFILING, Status.COMMITTED, Status.VERIFYING):
        seating, profiles = market.seats.seating(task_id), task.status is Status.PROFILING
        if not task.is_seated:
            since, due = seating.until, seating.until + terms.verification_window
        is_done = profiles and market.profiles.standing(task_id).is_posted
        if own == (task.holder if task.is_seated else seating.best) and not is_done:
            steps = profile_steps(terms) if profiles else verdict_steps(terms)
    elif task.status is Status.BIDDING:
        round_id = market.auction.last_round(market.registry.address, task_id)
        since = market.auction.standing(round_id).reveal_until
        due, steps = since + terms.training_window, terms.steps if market.auction.has_bid(round_id, own) else 0
    elif task.status is Status.TRAINING and task.solver == own:
        steps = terms.steps
    # What can't be executed here at all is left out: nothing that is left undone now would help it.
    with suppress(ProtocolError):
        if steps and task.status in (Status.BIDDING, Status.TRAINING):
            yield Job(PATIENCE * steps * pace(task_id), due, since)
        elif steps:
            yield Job(MARGIN * seconds_for(role, task_id, steps, inf), due, since)
