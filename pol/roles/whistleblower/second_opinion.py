"""Executions made a second time, in another way where that is cheap, before anything is said."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.execution.executor import Executor, ExecutorFactory
from pol.execution.reference import ReferenceExecutor
from pol.graph.step_program import StepProgram
from pol.roles.party.replaying_party import ReplayingParty
from pol.roles.process.work_time import verdict_steps

REFERENCE_WORK = 10**8
"""Most work units of a segment for the reference, which executes them in about a minute."""
REFERENCE_SPEED = 10**6
"""Work units that the reference does in a second, on a slow machine."""
PART = 100
"""A window for challenges is so many times longer than the reference takes for all that is drawn, or more."""
FLAKY = "two executions on this machine gave two results: nothing is staked; check its memory and its clocks"


class SecondOpinion(ReplayingParty):
    """A party that stakes on findings of its own, and makes sure of them first."""

    def replayer(self, task_id: bytes, opinion: int) -> ExecutorFactory:
        """The kernels; for a second opinion on small work the reference, which shares no code with them."""
        document, terms = self.task(task_id).document, self.market.registry.terms(task_id)
        seconds = document.work * verdict_steps(terms) / REFERENCE_SPEED
        is_small = document.work * document.interval <= REFERENCE_WORK and seconds <= terms.challenge_window / PART
        return _reference if opinion and is_small else super().replayer(task_id, opinion)


def _reference(program: StepProgram, constants: Sequence[Words]) -> Executor:
    return ReferenceExecutor(program, constants)
