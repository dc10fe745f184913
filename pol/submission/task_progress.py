"""A task on its way to settlement, in sentences: what has happened, and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.chain.times import duration
from pol.errors import OperationalError
from pol.roles.monitor.market_reader import MarketReader
from pol.roles.monitor.market_view import TaskView
from pol.roles.monitor.task_story import STAGES

SECONDS = 0.5
PATIENCE = 60.0
"""Seconds after which nobody seems to be there who makes the next call."""


@dataclass(frozen=True)
class Step:
    """One thing to tell: ``time`` is the chain's, ``waits`` what the task waits for."""

    time: int
    status: Status
    what: str
    waits: str


def progress(
    connection: Connection,
    reader: MarketReader,
    task_id: bytes,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    patience: float = PATIENCE,
) -> Iterator[Step]:
    """Everything about a task up to its settlement, as it happens: events, and a sentence for each status.

    Raises:
        OperationalError: the node failed, or for ``patience`` seconds nobody made a call that anybody may make.
    """
    told, status, changed, last, block = 0, Status.NONE, clock(), "", -1
    while True:
        while block == (block := connection.block_number()) and clock() - changed <= patience:
            sleep(SECONDS)
        with connection.cached():
            view, now = reader.task(task_id), connection.now()
        waits = waits_for(view, now)
        happened = view.happenings[told:]
        for event in happened:
            who = "" if event.who is None else f"{event.who[:8]} "
            yield Step(event.time, view.task.status, f"{who}{event.what}", waits)
        told += len(happened)
        if view.task.status is not status:
            status = view.task.status
            yield Step(now, status, STAGES[status].now, waits)
        if status is Status.CLOSED:
            return
        if happened or view.waits != last:
            changed, last = clock(), view.waits
        is_overdue = view.until is None or view.until < now
        if is_overdue and clock() - changed > patience:
            raise OperationalError(
                f"for {patience:.0f} s nobody has made the next call ({view.waits}): no party seems to run; "
                f"start them by `pol up`, and see what follows by `pol explain {task_id.hex()[:8]}`"
            )


def waits_for(view: TaskView, now: int) -> str:
    """What a task waits for, and how long by the chain's clock."""
    if view.until is None or view.until <= now:
        return view.waits
    return f"{view.waits}, for {duration(view.until - now)} of the chain's clock"
