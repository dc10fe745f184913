"""What a party owes about its other tasks while it executes for one: between two steps it looks, and does what is due.

Decisions execute, too: a whistleblower replays before it says anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from pol.errors import OperationalError, PolError
from pol.roles.party.decisions import Action, Decision, Mode
from pol.roles.party.dispute_session import open_disputes
from pol.roles.party.policy import MINUTE
from pol.roles.party.role import Role
from pol.roles.process.obligations import begun_tasks
from pol.training.storage.http_files import within

LOG = logging.getLogger(__name__)
LOOK = 30.0
"""Seconds of work after which a party looks at its other tasks, between two steps."""


def attend(role: Role, besides: bytes, fulfill: Callable[[bytes], object]) -> None:
    """Fulfill what this party owes about its other tasks. Whatever fails is logged, and the rest is done."""
    if role.mode < Mode.DEFEND:
        return
    role.connection.forget()  # what was read before the work is old
    try:
        disputed = (each.task_id for each in open_disputes(role))
        tasks = dict.fromkeys((*begun_tasks(role), *disputed, *role.examined()))
    except OperationalError as error:
        LOG.error("couldn't look at other tasks: %s", error)
        return
    for task_id in tasks:
        if task_id == besides:
            continue
        try:
            # The time for reading may be over: it was that of the work.
            with role.about(task_id), within(MINUTE, at_least=True):
                fulfill(task_id)
        except Exception as error:  # noqa: BLE001  # whatever it is, clocks run elsewhere
            tell(task_id, "look at it", error)


def tell(task_id: bytes, verb: str, error: Exception) -> None:
    """Log what failed about a task; a fault of pol with its trace."""
    LOG.error("task %s: %s: %s", task_id.hex(), verb, error, exc_info=None if isinstance(error, PolError) else error)


class Attention:
    """Called between the steps of long work on a task, it attends to the others every LOOK seconds."""

    def __init__(self, role: Role, besides: bytes, fulfill: Callable[[bytes], object]) -> None:
        self._role, self._besides, self._fulfill = role, besides, fulfill
        self._last, self._attends = time.monotonic(), False

    def __call__(self, *_: object) -> None:
        """Look at the other tasks, if it is time to."""
        if not self._attends and time.monotonic() - self._last >= LOOK:
            self._attends = True  # what it does now may take steps of its own
            attend(self._role, self._besides, self._fulfill)
            self._last, self._attends = time.monotonic(), False


P = TypeVar("P", bound=Role)


def attentively(
    decide: Callable[[P, bytes], Decision], fulfill: Callable[[P, bytes], object]
) -> Callable[[P, bytes], Decision]:
    """Decisions of a party that fulfills what it owes about others while it executes, to decide or to act."""

    @contextmanager
    def attending(role: Any, task_id: bytes) -> Iterator[None]:
        before: Callable[[], None] = role.between
        role.between = Attention(role, task_id, lambda other: fulfill(role, other))
        try:
            yield
        finally:
            role.between = before

    @wraps(decide)
    def decided(role: P, task_id: bytes) -> Decision:
        def act() -> object:
            with attending(role, task_id):
                return deed()

        with attending(role, task_id):
            found = decide(role, task_id)
        if not isinstance(found, Action):
            return found
        deed = found.act
        return replace(found, act=act)

    return decided
