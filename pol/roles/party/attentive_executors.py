"""Executors that look up before each step: long work leaves time for what is due elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pol.arithmetic.primitives import Words
from pol.execution.executor import Executor, ExecutorFactory, ResidentExecutor
from pol.graph.step_program import StepProgram

STEPS = {"run", "advance", "watch", "advance_resident"}


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
