"""Canonical replay: the defined bits of a segment, from a given state."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.claims.distance import require_state
from pol.execution.executor import Executor
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
    require_state(program, start)
    state = list(start)
    del start  # a large state is in memory once
    for step in range(first_step, first_step + steps):
        state, observed = executor.advance(state, step)
        if observe is not None:
            observe(step, observed)
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
    last = deque(replay(program, executor, start, first_step, steps, observe), maxlen=1)
    return last[0] if last else list(start)
