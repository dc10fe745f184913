"""Executions made a second time, in another way where that is cheap, before anything is said."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.execution.executor import Executor, ExecutorFactory
from pol.execution.reference import ReferenceExecutor
from pol.graph.step_program import StepProgram
from pol.roles.party.replaying_party import ReplayingParty
from pol.training.task.task_document import LoadedTask

REFERENCE_WORK = 10**8
"""Work units of a segment that the reference executes in about a minute."""
FLAKY = "two executions on this machine gave two results: nothing is staked; check its memory and its clocks"


class SecondOpinion(ReplayingParty):
    """A party that stakes on findings of its own, and makes sure of them first."""

    def replayer(self, task: LoadedTask, opinion: int) -> ExecutorFactory:
        """The kernels; for a second opinion on small work the reference, which shares no code with them."""
        is_small = task.document.work * task.document.interval <= REFERENCE_WORK
        return _reference if opinion and is_small else super().replayer(task, opinion)


def _reference(program: StepProgram, constants: Sequence[Words]) -> Executor:
    return ReferenceExecutor(program, constants)
