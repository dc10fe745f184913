"""Solvers that lie in one segment of each log and defend it, at once or in the last minutes of their clocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random

from pol.demo.cheating_parties import CheatingParty
from pol.demo.lying_players import Lie, LyingExecutor, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.roles.party.decisions import Action, Decision, Wait
from pol.roles.solver.solver import OnCheckpoint, Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment
from pol.verification.replay.canonical_replay import replay_end

BLOCK_SECONDS = 12
"""Of the chain."""
FALSE = 1
"""The segment that every lying solver lies in."""


class LyingSolver(CheatingParty, Solver):
    """Trains canonically, but for one flipped bit in the segment `FALSE`, and defends it.

    The lie follows from the task's id, so that another process with the same key knows it.
    """

    @cached_property
    def _lies(self) -> dict[bytes, Lie]:
        return {}

    def train(
        self, task_id: bytes, on_checkpoint: OnCheckpoint | None = None, progress_every: int = 4
    ) -> LearningProof:
        """Record the canonical segments, with the lie in one of them."""
        task, interval = self.task(task_id), self.task(task_id).document.interval
        recorder, state = TaskRecorder(self.store, task), task.initial_state
        recorder(0, state)
        for segment in range(task.document.segments):
            sound = CpuExecutor(task.program, task.constants)
            executor: CpuExecutor | LyingExecutor = sound
            if segment == FALSE:
                start = [words.copy() for words in state]
                honest = SegmentTrace(task.program, task.constants, sound, start, segment * interval, interval)
                lie = self._lie(task_id, task, honest)
                executor = LyingExecutor(task.program, task.constants, sound, lie)
            end = replay_end(task.program, executor, state, segment * interval, interval)
            state = [words.copy() for words in end]
            recorder(segment + 1, state)
        return self.commit(task_id, recorder.publish(environment(exact=True))[0])

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        honest = super().execute(task_id, segment)
        return LyingTrace(honest, self._lie(task_id, self.task(task_id), honest)) if segment == FALSE else honest

    def _lie(self, task_id: bytes, task: LoadedTask, honest: SegmentTrace) -> Lie:
        if task_id not in self._lies:
            self._lies[task_id] = draw_lie(honest, range(len(task.program.nodes)), Random(task_id))
        return self._lies[task_id]


def dawdling(role: Solver, task_id: bytes) -> Decision:
    """The decisions of a solver that moves in the last twenty blocks of its clock only: it has to meet it, too."""
    decision, last = next_of_solver(role, task_id), 20 * BLOCK_SECONDS
    if not isinstance(decision, Action) or decision.verb != "move" or decision.due is None:
        return decision
    if role.connection.now() >= decision.due - last:
        return decision
    return Wait(task_id, "there is time left", decision.due - last)


OPPONENTS: dict[str, Callable[[Solver, bytes], Decision]] = {"liar": next_of_solver, "dawdler": dawdling}
