"""How long work about a task takes this machine, by one step that is timed: before anything is staked on it.

Work is counted in canonical steps. A task whose work alone says that it is too much isn't even timed.
"""

from __future__ import annotations

from collections.abc import Callable

from pol.chain.desks.task_registry import Terms
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.roles.party.decisions import Rest
from pol.roles.party.role import Role
from pol.roles.process.obligations import postponed

RESERVE = 2
"""Times that what has to be done fits into its window: for files, transactions, other tasks, and a slower day."""
FASTEST = 10**11
"""Work units that no thread of a processor does in a second."""
ORDINARY = 10**9
"""What one does: how long it takes to time a step is guessed by it."""
LONG = 1.0
"""Seconds of a step that need no second look: loading libraries and allocating don't count any more."""


def timed(step: Callable[[], object], timer: Callable[[], float]) -> float:
    """The seconds that a step takes; a short one is taken twice, as the first time is that of loading libraries."""
    least = float("inf")
    for _ in range(2):
        began = timer()
        step()
        least = min(least, timer() - began)
        if least >= LONG:
            break
    return least


def profile_steps(terms: Terms) -> int:
    """Steps that measuring a profile takes."""
    return terms.profiled * (terms.rerun_count + 1) * terms.interval


def verdict_steps(terms: Terms) -> int:
    """Steps that a verdict takes, if every drawn segment is looked at again."""
    return terms.draws * (terms.looks + 1) * terms.interval


def move_steps(terms: Terms, verifies: bool) -> int:
    """Steps before a side's first move in a dispute, after a restart: the segment, and a rerun of it."""
    before = 1 if verifies else terms.profiled
    return (before + (terms.rerun_count > 0)) * terms.interval


def seconds(role: Role, task_id: bytes, steps: int, most: float) -> float:
    """Seconds that so many steps take here; only a lower bound where that is more than ``most`` already.

    Raises:
        ProtocolError: the task isn't what it says, or can't be executed.
        OperationalError: the node or the store failed.
    """
    task = role.task(task_id)
    least = steps * task.document.work / FASTEST
    if least > most:
        return least
    if task_id not in role.paces:
        executor = CpuExecutor(task.program, task.constants)
        role.paces[task_id] = timed(lambda: executor.advance(task.initial_state, 0), role.timer)
    return steps * role.paces[task_id]


def timing_seconds(role: Role, task_id: bytes) -> float:
    """A guess of how long it takes to time a step of a task.

    Raises:
        ProtocolError: the task isn't what it says.
        OperationalError: the node or the store failed.
    """
    guess = role.task(task_id).document.work / ORDINARY
    return guess if guess >= LONG else 2 * guess


def require_time(role: Role, task_id: bytes, terms: Terms, verifies: bool) -> float:
    """Check that this machine does the duty of a seat in its window; the seconds that the duty takes.

    Raises:
        ProtocolError: it doesn't, or the task can't be executed: leave the seat.
        OperationalError: the node or the store failed.
    """
    duty = verdict_steps(terms) if verifies else profile_steps(terms)
    needed = _required(role, task_id, "verificationWindow", duty, terms.verification_window)
    _required(role, task_id, "clock", move_steps(terms, verifies), terms.clock)
    return needed


def untimely(role: Role, task_id: bytes, needed: Callable[[], float], until: int) -> Rest | None:
    """Why work about a task isn't begun now: it takes too long, or something else is due before; None if it may begin.

    ``needed`` gives the seconds that it takes, and may time a step for that; ``until`` is the last second in which it
    makes sense.

    Raises:
        OperationalError: the node or the store failed.
    """
    try:
        if task_id not in role.paces:
            waits = postponed(role, task_id, timing_seconds(role, task_id), until)
            if waits is not None:
                return waits
        return postponed(role, task_id, needed(), until)
    except ProtocolError as error:
        return Rest(task_id, str(error), until)


def require_look(role: Role, task_id: bytes, steps: int, until: int) -> float:
    """Check that an examination, and a second one of what it finds, end in time; the seconds that both take.

    Raises:
        ProtocolError: they don't.
        OperationalError: the node or the store failed.
    """
    left = until - role.connection.now()
    needed = seconds(role, task_id, 2 * steps, left)
    if needed > left:
        raise ProtocolError(
            f"looking twice takes this machine about {needed:.0f} s, and there are {left} s left for it"
        )
    return needed


def _required(role: Role, task_id: bytes, field: str, steps: int, window: int) -> float:
    most = window / RESERVE
    needed = seconds(role, task_id, steps, most)
    if needed > most:
        raise ProtocolError(
            f"what the {field} of {window} s is for takes this machine about {needed:.0f} s, and has to fit {RESERVE} "
            "times: leave the task alone, or take a faster machine"
        )
    return needed
