"""The interface of all executors of step programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pol.arithmetic.primitives import Words
from pol.graph.step_program import StepProgram

Seen: TypeAlias = Callable[[int, Words], None]
"""``seen(node, output)``: looks at the output of a node while it is there."""


class Executor(Protocol):
    """Runs one step of one program bit-exactly (`CpuExecutor` or `ReferenceExecutor`: the same bits)."""

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """The outputs of all nodes at ``step``."""
        ...

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The state after ``step``, and the observed values; the bits of `run`."""
        ...

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The state after ``step``, and each output by ``seen(node, output)`` in program order: `run` in less memory.

        An output is valid in that call alone.
        """
        ...

    def observing(self, nodes: Sequence[int]) -> Executor:
        """An executor of the same program that observes the outputs of these nodes, in this order, and nothing else."""
        ...


ExecutorFactory: TypeAlias = Callable[[StepProgram, Sequence[Words]], Executor]
