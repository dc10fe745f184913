"""What a party owes about its other tasks while it works on one: between two steps it looks, and does what is due."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError, PolError
from pol.execution.executor import Executor, ExecutorFactory, ResidentExecutor
from pol.graph.step_program import StepProgram
from pol.roles.party.role import Role
from pol.roles.process.obligations import begun_tasks

LOG = logging.getLogger(__name__)
LOOK = 30.0
"""Seconds of work after which a party looks at its other tasks, between two steps."""
STEPS = {"run", "advance", "watch", "advance_resident"}


def attend(role: Role, besides: bytes, fulfill: Callable[[bytes], object]) -> None:
    """Fulfill what this party owes about its other tasks. Whatever fails is logged, and the rest is done."""
    try:
        tasks = [task_id for task_id in begun_tasks(role) if task_id != besides]
    except OperationalError as error:
        LOG.error("couldn't look at other tasks: %s", error)
        return
    for task_id in tasks:
        try:
            with role.about(task_id):
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
        self._last, self._attends = role.timer(), False

    def __call__(self, *_: object) -> None:
        """Look at the other tasks, if it is time to."""
        if not self._attends and self._role.timer() - self._last >= LOOK:
            self._attends = True  # what it does now may take steps of its own
            attend(self._role, self._besides, self._fulfill)
            self._last, self._attends = self._role.timer(), False


def attentive(executors: ExecutorFactory, look: Callable[[], None]) -> ExecutorFactory:
    """Executors that look up before each step."""

    def made(program: StepProgram, constants: Sequence[Words]) -> Executor:
        executor = executors(program, constants)
        if isinstance(executor, ResidentExecutor):
            return AttentiveDevice(executor, look)
        return AttentiveExecutor(executor, look)

    return made


def _passed(name: str) -> Any:
    def method(self: AttentiveExecutor, *arguments: Any) -> Any:
        if name in STEPS:
            self.look()
        return getattr(self.executor, name)(*arguments)

    return method


@dataclass(frozen=True)
class AttentiveExecutor:
    """See `attentive`."""

    executor: Executor
    look: Callable[[], None]
    run, advance, watch = map(_passed, ("run", "advance", "watch"))

    def observing(self, nodes: Sequence[int]) -> AttentiveExecutor:
        """See Executor."""
        return replace(self, executor=self.executor.observing(nodes))


class AttentiveDevice(AttentiveExecutor):
    """One whose states stay on a device."""

    place, fetch, fetch_observed = map(_passed, ("place", "fetch", "fetch_observed"))
    advance_resident, state_root = map(_passed, ("advance_resident", "state_root"))
