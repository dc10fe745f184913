"""Canonical replay of a task: the defined states of its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.execution.device.open_device import CPU, executors_on
from pol.training.task.task_document import LoadedTask
from pol.verification.replay import canonical_replay


def replay(
    task: LoadedTask,
    start: Sequence[Words] | None = None,
    first_step: int = 0,
    steps: int | None = None,
    *,
    threads: int = 0,
    device: str = CPU,
) -> Iterator[list[Words]]:
    """The states of a task after each step: the same bits on every machine.

    Args:
        task: with its program and data.
        start: the state before ``first_step``, an array of 32-bit words a slot; the task's own at step 0 by default.
        steps: how many; up to the end by default.
        threads: of the kernels; 0 for all cores.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``host`` (`pol.execution.device.open_device`).

    Raises:
        ProtocolError: ``start`` isn't a state of the task, or there are no such steps, or no such name of a device.
        OperationalError: the device can't be used.
    """
    end = task.document.steps if steps is None else first_step + steps
    if not 0 <= first_step <= end <= task.document.steps:
        raise ProtocolError(f"no steps {first_step} to {end}: the task has {task.document.steps}, from 0")
    executor = executors_on(device, threads)(task.program, task.constants)
    begin = task.initial_state if start is None else start
    return canonical_replay.replay(task.program, executor, begin, first_step, end - first_step)
