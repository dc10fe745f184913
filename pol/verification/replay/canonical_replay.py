"""Canonical replay: the defined bits of a segment, from a given state."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.claims.distance import require_state
from pol.execution.executor import Executor, ResidentExecutor
from pol.graph.step_program import StepProgram

Observe: TypeAlias = Callable[[int, list[Words]], None]
"""``observe(step, words)``: what the executor shows of a step, such as the loss."""


def replay(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    first_step: int,
    steps: int,
    observe: Observe | None = None,
) -> Iterator[list[Words]]:
    """The states after each of ``steps`` steps from ``start``, which is the state before ``first_step``.

    Raises:
        ProtocolError: ``start`` isn't a state of the program.
    """
    return replay_every(program, executor, start, first_step, steps, 1, observe)


def replay_every(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    first_step: int,
    steps: int,
    interval: int,
    observe: Observe | None = None,
    on_root: Callable[[bytes], None] | None = None,
) -> Iterator[list[Words]]:
    """As `replay`, the states after every ``interval`` steps: others never leave the memory of a device.

    ``on_root`` gets the root of each state before it, if a device has computed it.
    """
    require_state(program, start)
    ends = range(first_step + interval - 1, first_step + steps, interval)
    if isinstance(executor, ResidentExecutor):
        resident = executor.place(start)
        del start
        for step in range(first_step, first_step + steps):
            resident, outputs = executor.advance_resident(resident, step)
            if observe is not None:
                observe(step, executor.fetch_observed(outputs))
            if step in ends:
                if on_root is not None:
                    on_root(executor.state_root(resident))
                yield executor.fetch(resident)
        return
    state = list(start)
    del start  # a large state is in memory once
    for step in range(first_step, first_step + steps):
        state, observed = executor.advance(state, step)
        if observe is not None:
            observe(step, observed)
        if step in ends:
            yield state


def replay_end(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    first_step: int,
    steps: int,
    observe: Observe | None = None,
) -> list[Words]:
    """The state after ``steps`` steps from ``start``."""
    last = deque(replay_every(program, executor, start, first_step, steps, max(1, steps), observe), maxlen=1)
    return last[0] if last else list(start)
