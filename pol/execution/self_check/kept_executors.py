"""Executors of the programs of one self-check; small ones are kept, since making one takes longer than its step."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import StepProgram

SMALL = 1 << 22
"""Words of all values of a step below which an executor is kept: of a larger one the memory counts."""


class KeptExecutors:
    """Executes steps of programs on so many threads."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._kept: dict[int, tuple[StepProgram, CpuExecutor]] = {}

    def advance(
        self,
        program: StepProgram,
        observed: Sequence[int],
        state: Sequence[Words],
        constants: Sequence[Words],
        step: int,
    ) -> tuple[list[Words], list[Words]]:
        """The next state and the outputs of the observed nodes, which are the same in each call for one program."""
        _, executor = self._kept.get(id(program), (program, None))
        if executor is None:
            executor = CpuExecutor(program, constants, self._threads, observed)
            if sum(node.type.numel for node in program.nodes) < SMALL:
                self._kept[id(program)] = program, executor
        return executor.advance(state, step, constants)
