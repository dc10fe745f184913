"""The interface of all executors of step programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pol.arithmetic.primitives import Words
from pol.graph.step_program import StepProgram

Seen: TypeAlias = Callable[[int, Words], None]
"""``seen(node, output)``: looks at the output of a node while it is there."""


def look_at_nothing(node: int, output: Words) -> None:
    """Looks at no output: for `Executor.watch`, which then needs to bring none from a device."""


class Executor(Protocol):
    """Runs one step of one program bit-exactly (`CpuExecutor`, `ReferenceExecutor`, `DeviceExecutor`: equal bits)."""

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


@runtime_checkable
class ResidentExecutor(Executor, Protocol):
    """An executor whose states can stay in the memory of a device from step to step."""

    def place(self, state: Sequence[Words]) -> list[Any]:
        """A state in the device's memory."""
        ...

    def fetch(self, state: Sequence[Any]) -> list[Words]:
        """A copy of a state in the host's memory."""
        ...

    def fetch_observed(self, observed: Sequence[Any]) -> list[Words]:
        """Copies of the observed values in the host's memory."""
        ...

    def advance_resident(self, state: Sequence[Any], step: int) -> tuple[list[Any], list[Any]]:
        """As `advance`, all of it in the device's memory."""
        ...

    def state_root(self, state: Sequence[Any]) -> bytes:
        """The root of a state in the device's memory."""
        ...


ExecutorFactory: TypeAlias = Callable[[StepProgram, Sequence[Words]], Executor]
