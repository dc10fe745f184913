"""Time that work on a task takes this machine, from one timed step, before anything is staked on it.

Work is counted in canonical steps. A task whose work units alone are too many isn't timed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from pol.chain.desks.task_registry import Terms
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.decisions import Wait
from pol.roles.party.machine import LONG
from pol.roles.party.role import Role
from pol.roles.party.task_reader import TaskReader
from pol.roles.process.obligations import MARGIN, wait_for_duty

RESERVE = 2
"""How many times a duty has to fit into its window, to leave time for files, transactions and other tasks."""
ORDINARY = 10**9
"""Typical work units per second: a guess of the time that timing a step takes."""
SLOWER = "leave the task alone, or use a faster machine"


def profile_steps(terms: Terms) -> int:
    """Steps of measuring a profile."""
    return terms.profiled * (terms.rerun_count + 1) * terms.interval


def verdict_steps(terms: Terms) -> int:
    """Steps of a verdict with a second look at every drawn segment."""
    return terms.draws * (terms.looks + 1) * terms.interval


def move_steps(terms: Terms, verifies: bool) -> int:
    """Steps before a side's first move in a dispute after a restart: the segment, and a rerun of it."""
    before = 1 if verifies else terms.profiled
    return (before + (terms.rerun_count > 0)) * terms.interval


def seconds_for(reader: TaskReader, task_id: bytes, steps: int, most: float) -> float:
    """Seconds that ``steps`` take here, or only a lower bound if that already exceeds ``most``."""
    task = reader.task(task_id)
    least = steps * task.document.work / reader.times.fastest
    return least if least > most else steps * reader.times.pace(task_id, task)


def timing_seconds(role: Role, task_id: bytes) -> float:
    """A guess of the seconds that timing a step of a task takes."""
    guess = role.task(task_id).document.work / ORDINARY
    return guess if guess >= LONG else 2 * guess


def require_time(role: Role, task_id: bytes, terms: Terms, verifies: bool) -> float:
    """Check that this machine can do the duty of a seat in its window. Returns the seconds that the duty takes."""
    duty = verdict_steps(terms) if verifies else profile_steps(terms)
    return _required(role, task_id, "verificationWindow", duty, terms.verification_window)


def replay_seconds(role: Role, task_id: bytes, terms: Terms) -> float:
    """Seconds at the end of its window in which a verifier begins no replay, as it might end late.

    Where the task can't be read, it is the longest replay for which a seat is claimed.
    """
    most = (terms.verification_window - role.policy.outage) / RESERVE
    needed = most
    with suppress(OperationalError, ProtocolError):
        needed = min(most, seconds_for(role, task_id, verdict_steps(terms), most))
    return MARGIN * needed


def require_time_to_answer(role: Role, task_id: bytes, terms: Terms) -> None:
    """Check that this machine can answer a counterclaim about a log of its own in the time that the terms give for it.

    It is first compared with a replay and a second look, and the segment is replayed again for the contest.
    """
    if not terms.is_exact:
        _required(role, task_id, "challengeWindow", (2 + terms.looks) * terms.interval, terms.challenge_window)


def wait_for_time(role: Role, task_id: bytes, needed: Callable[[], float], until: int) -> Wait | None:
    """The wait if work on a task takes too long, or an obligation is due before its end; None if it may begin.

    ``needed`` returns the seconds of the work, and may time a step; ``until`` is the last useful second of the work.
    """
    try:
        if task_id not in role.times.paces:
            waits = wait_for_duty(role, task_id, timing_seconds(role, task_id), until)
            if waits is not None:
                return waits
        return wait_for_duty(role, task_id, needed(), until)
    except ProtocolError as error:
        return Wait(task_id, str(error), until)


def require_time_to_look(role: Role, task_id: bytes, steps: int, until: int) -> float:
    """Check that an examination and its repetition end in time. Returns the seconds that both take."""
    left = until - role.connection.now()
    needed = seconds_for(role, task_id, 2 * steps, left)
    if needed > left:
        raise ProtocolError(f"examining twice takes this machine about {needed:.0f} s, and only {left} s are left")
    return needed


def _required(role: Role, task_id: bytes, field: str, steps: int, window: int) -> float:
    most = (window - role.policy.outage) / RESERVE
    needed = seconds_for(role, task_id, steps, most)
    if needed > most:
        raise ProtocolError(
            f"the work for the {field} of {window} s takes this machine about {needed:.0f} s, and has to fit {RESERVE} "
            f"times: {SLOWER}"
        )
    return needed
