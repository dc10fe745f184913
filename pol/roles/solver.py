"""The solver: accepts a task, trains it with stock torch, publishes checkpoints and commits the learning proof."""

from __future__ import annotations

from collections.abc import Callable

from pol.arithmetic.primitives import Words
from pol.execution.torch_native import NativeExecutor
from pol.roles.role import Role
from pol.training.learning_proof import LearningProof
from pol.training.solver import Recorder, StepExecutor, environment, train
from pol.training.task import LoadedTask

OnCheckpoint = Callable[[int, int], None]


class Solver(Role):
    """Trains for money."""

    def accept(self, task_id: bytes, discount_percent: int = 20) -> int:
        """Check the task, stake on it and ask for less than the maximum price; returns the price in wei."""
        self.task(task_id)
        state, terms = self.market.task(task_id), self.market.terms(task_id)
        price = (state.fee - terms.verifier_fee) * (100 - discount_percent) // 100
        self.market.accept(self.wallet, task_id, price, state.thresholds)
        return price

    def executor(self, task: LoadedTask) -> StepExecutor:
        """What trains: stock torch kernels."""
        return NativeExecutor(task.aten)

    def train(
        self, task_id: bytes, on_checkpoint: OnCheckpoint | None = None, progress_every: int = 4
    ) -> LearningProof:
        """Train, posting the checkpoint log's root on chain as it grows, and commit the learning proof.

        ``on_checkpoint(index, segments)`` is called after every checkpoint; every ``progress_every``-th of them goes to
        the chain.

        Raises:
            TrainingDivergedError: the loss isn't finite any more.
        """
        task = self.task(task_id)
        recorder = Recorder(self.store, task)
        segments = task.document.segments
        posted = 0

        def record(index: int, state: list[Words]) -> None:
            nonlocal posted
            recorder(index, state)
            if index % progress_every == progress_every - 1 and index < segments:
                size, log = index + 1, recorder.log
                consistency = log.consistency(posted) if posted else []
                self.market.post_progress(self.wallet, task_id, size, log.root(), consistency)
                posted = size
            if on_checkpoint is not None:
                on_checkpoint(index, segments)

        train(task, self.executor(task), record)
        digest, proof = recorder.publish(environment())
        log = recorder.log
        consistency = log.consistency(posted) if posted else []
        arguments = (segments + 1, log.root(), consistency, bytes.fromhex(digest), log.inclusion(0))
        self.market.commit_proof(self.wallet, task_id, *arguments)
        return proof
