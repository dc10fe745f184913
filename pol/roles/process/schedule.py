"""A party's schedule: all that it has taken on has to be done before each deadline, and what it asks for next too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from pol.chain.desks.task_registry import Status
from pol.errors import ProtocolError
from pol.roles.party.decisions import Action
from pol.roles.party.role import Role
from pol.roles.process.obligations import MARGIN, begun_tasks, has_bid
from pol.roles.process.work_time import profile_steps, seconds_for, verdict_steps


def in_order(deeds: Iterable[Action], now: int, seconds: Callable[[Action], float]) -> list[Action]:
    """Deeds by their deadlines. Those that can't be met come last; they are the ones with the least at stake.

    Moore's rule: in the order of deadlines, whenever the work outlasts one, the least deed before it is put off.

    Args:
        now: the chain's time.
        seconds: what a deed is expected to take.
    """
    timely, put_off, end = list[Action](), list[Action](), float(now)
    for deed in sorted(deeds, key=_deadline):
        timely.append(deed)
        end += seconds(deed)
        while timely and deed.due is not None and end > deed.due:
            least = min(timely, key=lambda each: (each.at_stake, -seconds(each)))
            timely.remove(least)
            put_off.append(least)
            end -= seconds(least)
    return timely + put_off


def _deadline(deed: Action) -> tuple[bool, int]:
    return (deed.due is None, deed.due or 0)


PATIENCE = 1.5
"""Factor on the time of a training's steps, for checkpoints, transactions and other work."""


@dataclass(frozen=True)
class Job:
    """Work of so many seconds that has to end by second ``due``, or ``window`` seconds after others let it begin."""

    seconds: float
    due: float = inf
    window: float = inf


def late_job(jobs: Iterable[Job], now: float, outage: float = 0) -> Job | None:
    """A job that may end late, if each is done at one go, of those that may begin the one with the first deadline.

    The chain may halt for ``outage`` seconds. If any order ends all jobs with a ``due`` in time, so does this one.
    Others choose when work with a window may begin: at worst all of it at once, just after the longest other work has
    begun.
    """
    ordered = sorted(jobs, key=lambda each: min(each.due, now + each.window))
    end = now
    for number, job in enumerate(ordered, 1):
        end += job.seconds
        begun = max((other.seconds for other in ordered[number:]), default=0) if job.window < inf else 0
        if end + begun + outage > min(job.due, now + job.window):
            return job
    return None


def require_schedule(role: Role, task_id: bytes, job: Job, pace: Callable[[bytes], float] | None = None) -> None:
    """Check that a job about a task fits beside all seats and trainings that this party holds, claims and bids for.

    ``pace`` gives the seconds of a training's step here; by default those of a replay.
    """
    step = pace or (lambda other: seconds_for(role, other, 1, inf))
    known = role.connection.once(
        ("jobs", role), lambda: {each: list(_jobs(role, each, step)) for each in begun_tasks(role)}
    )
    others = [each for other, jobs in known.items() if other != task_id for each in jobs]
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
    steps, due, window = 0, float(task.deadline), inf
    if task.status in (Status.PROFILING, Status.COMMITTED, Status.VERIFYING):
        profiles = task.status is Status.PROFILING
        if not task.is_seated:
            due, window = inf, terms.verification_window
        is_done = profiles and market.profiles.standing(task_id).is_posted
        if own == (task.holder if task.is_seated else market.seats.seating(task_id).best) and not is_done:
            steps = profile_steps(terms) if profiles else verdict_steps(terms)
    elif task.status is Status.BIDDING and has_bid(role, task_id):
        due, window, steps = inf, terms.training_window, terms.steps
    elif task.status is Status.TRAINING and task.solver == own:
        steps = terms.steps
    # What can't be executed here at all is left out: nothing that is left undone now would help it.
    with suppress(ProtocolError):
        if steps and task.status in (Status.BIDDING, Status.TRAINING):
            yield Job(PATIENCE * steps * pace(task_id), due, window)
        elif steps:
            yield Job(MARGIN * seconds_for(role, task_id, steps, inf), due, window)
