"""The interface of all executors of step programs."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pol.arithmetic.primitives import Words
from pol.graph.step_program import StepProgram


class Executor(Protocol):
    """Runs one step of one program bit-exactly (`CpuExecutor` or `ReferenceExecutor`: the same bits)."""

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """The outputs of all nodes at ``step``."""
        ...

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The state after ``step``, and the observed values; the bits of `run`."""
        ...


ExecutorFactory: TypeAlias = Callable[[StepProgram, Sequence[Words]], Executor]
