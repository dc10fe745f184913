"""The solver: accepts a task, trains it with stock torch, publishes checkpoints and commits the learning proof."""

from __future__ import annotations

from collections.abc import Callable

from pol.arithmetic.primitives import Words
from pol.chain.market import Terms
from pol.commitments.log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.torch_native import NativeExecutor
from pol.roles.role import Role
from pol.training import learning_proof
from pol.training.learning_proof import LearningProof
from pol.training.solver import StepExecutor, TaskRecorder, environment, train
from pol.training.task import LoadedTask
from pol.verification import profile
from pol.verification.profile_claim import EXACT
from pol.verification.profiling import profile as measure_profile
from pol.verification.replay import replay
from pol.verification.verdict import Three

OnCheckpoint = Callable[[int, int], None]


class Solver(Role):
    """Trains for money."""

    def accept(self, task_id: bytes, discount_percent: int = 20, recheck: bool = True) -> int:
        """Check task, terms and profile, stake, and ask for less than the maximum price; returns the price in wei.

        ``recheck`` repeats the profile's measurements, each a replay of a segment. Without it the window is trusted, in
        which nobody has convicted the profile; who hides reruns can't be convicted (docs/spec/profile.md).

        Raises:
            ProtocolError: nothing that this party should stake on; the message says why.
            OperationalError: there is no final profile yet, or the node or the store failed.
        """
        self.task(task_id)
        state, terms = self.market.task(task_id), self.market.terms(task_id)
        self.policy.require(terms)
        self.policy.require_margin(terms)
        thresholds = EXACT if terms.is_exact else self._final_thresholds(task_id, terms, recheck)
        price = (state.fee - terms.verifier_fee) * (100 - discount_percent) // 100
        self.market.accept(self.wallet, task_id, price, thresholds)
        return price

    def _final_thresholds(self, task_id: bytes, terms: Terms, recheck: bool) -> Three:
        posted, task = self.profiles.posted(task_id), self.task(task_id)
        if self.connection.now() <= posted.deadline or self.profiles.disputes(task_id):
            raise OperationalError(
                f"the profile can be challenged until second {posted.deadline}, and disputes about it may last longer: "
                "its thresholds aren't final yet; try again later"
            )
        # Decoding checks that the thresholds follow from witnesses, margin and floor.
        published = profile.load(self.store, posted.digest.hex(), task)
        if published.thresholds != posted.thresholds:
            raise ProtocolError(
                f"the verifier posted other thresholds, {posted.thresholds}, than its profile has, "
                f"{published.thresholds}: don't stake on them"
            )
        if recheck:
            own = measure_profile(task, CpuExecutor, terms.profiled, terms.rerun_count, terms.margin)
            if own != published or (own.claim.portions, own.claim.root) != (posted.portions, posted.root):
                raise ProtocolError("the verifier's profile was never measured: the same reruns part in another way")
        return posted.thresholds

    def executor(self, task: LoadedTask) -> StepExecutor:
        """What trains where a profile leaves room for it: stock torch kernels."""
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
        recorder = TaskRecorder(self.store, task)
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

        if self.market.terms(task_id).is_exact:
            train_canonically(task, record)
        else:
            train(task, self.executor(task), record)
        digest, _ = recorder.publish(environment())
        return self.commit(task_id, digest)

    def commit(self, task_id: bytes, digest: str) -> LearningProof:
        """Commit a learning proof that lies in the store, e.g. that of a loop of one's own (`Recorder.learning_proof`).

        Raises:
            ProtocolError: it isn't a whole proof of this task, or its log isn't the one whose roots were posted.
            OperationalError: the node or the store failed.
        """
        proof = learning_proof.load(self.store, digest, self.task(task_id))
        log = CheckpointLog([entry.state_root for entry in proof.checkpoints])
        posted = self.market.task(task_id).log_size
        consistency = log.consistency(posted) if posted else []
        arguments = (len(proof.checkpoints), log.root(), consistency, bytes.fromhex(digest), log.inclusion(0))
        self.market.commit_proof(self.wallet, task_id, *arguments)
        return proof


def train_canonically(task: LoadedTask, on_checkpoint: Callable[[int, list[Words]], None]) -> None:
    """Train all steps with the defined bits, as exact mode asks for; ``on_checkpoint`` as in `train`."""
    document = task.document
    executor = CpuExecutor(task.program, task.constants)
    on_checkpoint(0, task.initial_state)
    states = replay(task.program, executor, task.initial_state, 0, document.steps)
    for step, state in enumerate(states, 1):
        if step % document.interval == 0:
            on_checkpoint(step // document.interval, state)
