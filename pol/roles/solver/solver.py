"""The solver: bids for a task, trains it with stock torch, publishes checkpoints and commits the learning proof."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from pol.arithmetic.primitives import Words
from pol.chain.desks.task_registry import Terms
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.execution.cpu import on_all_cores
from pol.execution.device.open_device import CPU
from pol.execution.executor import ExecutorFactory
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.incentives.auction import Bid, commitment
from pol.roles.party.machine import time_work
from pol.roles.solver.step_prover import StepProver
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import StepExecutor, environment, tensors, torch_device, train
from pol.verification.profile.profile_document import load_profile
from pol.verification.profile.profiling import measure_profile
from pol.verification.replay.canonical_replay import replay_every

OnCheckpoint = Callable[[int, int], None]
SERVING, AGAIN = 10.0, 600
"""Seconds for which a solver looks for a state that isn't in the store, and after which it tries one again."""


class Solver(StepProver):
    """Trains for money, and answers for every segment of its log."""

    def bid(self, task_id: bytes, discount_percent: int = 20, promised: int | None = None, recheck: bool = True) -> Bid:
        """Check task, terms and profile, and place a sealed bid of price and training time; the stake is locked.

        ``discount_percent`` is taken off the maximum price. ``promised`` is the promised training time in seconds, at
        most the terms' window. ``recheck`` repeats the profile's measurements, each a replay of a segment. Without it
        the party relies on the window in which nobody convicted the profile; a profiler that hides reruns can't be
        convicted (docs/spec/profile.md).

        Raises:
            ProtocolError: the task isn't safe to stake on; the message says why.
            OperationalError: there is no final profile yet, or the node or the store failed.
        """
        task, terms = self.task(task_id), self.market.registry.terms(task_id)
        self.policy.require_margin(terms)
        self.require_acceptable(task_id)
        self.require_prover(task_id)
        if not terms.is_exact:
            self._require_profile(task_id, task, terms, recheck)
        bid = self.require_bid(terms, discount_percent, promised)
        round_id = self.market.auction.last_round(self.market.registry.address, task_id)
        self.market.auction.bid(self.wallet, round_id, commitment(round_id, bid, self.secret("bid", round_id)))
        return bid

    def reveal(self, task_id: bytes, discount_percent: int = 20, promised: int | None = None) -> None:
        """Reveal the bid made with the same arguments, once the time for bids is over.

        Raises:
            Reverted: the time to reveal is over, or the bid was revealed.
        """
        round_id = self.market.auction.last_round(self.market.registry.address, task_id)
        bid = self._bid(self.market.registry.terms(task_id), discount_percent, promised)
        salt = self.secret("bid", round_id)
        self.connection.wait_until(self.market.auction.bid_until(round_id))
        arguments = (round_id, self.wallet.address, bid.price, bid.seconds, salt)
        self.market.auction.reveal(self.wallet, *arguments)

    def require_bid(self, terms: Terms, discount_percent: int = 20, promised: int | None = None) -> Bid:
        """The bid, which can be revealed and pays for the training: one that nobody reveals costs a part of its stake.

        Raises:
            ProtocolError: it can't, or doesn't.
        """
        bid = self._bid(terms, discount_percent, promised)
        if not bid.price:
            raise ProtocolError(
                f"at {terms.second_price} for a second, a bid that promises {bid.seconds} s leaves nothing of the "
                f"maximum price of {terms.maximum_price} for the training: promise less time, or leave the task alone"
            )
        if not self.market.auction.admits(self.wallet.address, terms.work_units, bid.seconds):
            raise ProtocolError(
                f"{terms.work_units} work units in {bid.seconds} s are faster than the trainings by which this account "
                "is known: win smaller or slower tasks first, or leave this one alone"
            )
        return bid

    def _bid(self, terms: Terms, discount_percent: int, promised: int | None) -> Bid:
        seconds = terms.training_window if promised is None else promised
        price = terms.maximum_price * (100 - discount_percent) // 100 - terms.second_price * seconds
        return Bid(bytes.fromhex(self.wallet.address[2:]), max(price, 0), seconds)

    def _require_profile(self, task_id: bytes, task: LoadedTask, terms: Terms, recheck: bool) -> None:
        """Check that the thresholds are final and follow from measurements.

        Raises:
            ProtocolError: they don't.
            OperationalError: they aren't final yet, or the node or the store failed.
        """
        thresholds = self.thresholds(task_id)
        posted = self.market.profiles.posted(task_id)
        # Loading checks that the thresholds follow from witnesses, margin and floor.
        published = load_profile(self.store, posted.digest.hex(), task)
        if published.thresholds != thresholds:
            raise ProtocolError(
                f"the profiler posted other thresholds, {thresholds}, than its profile has, {published.thresholds}: "
                "don't stake on them"
            )
        if recheck:
            own = measure_profile(task, self.times.executors, terms.profiled, terms.rerun_count, terms.margin)
            if own != published or (own.claim.portions, own.claim.root) != (posted.portions, posted.root):
                raise ProtocolError("the profile was never measured: the same reruns diverge otherwise here")

    device = CPU
    """Where torch trains, for tasks that aren't exact: ``cuda``, ``cuda:N``, ``host``, as `open_device` names them."""

    def executor(self, task: LoadedTask) -> StepExecutor:
        """The executor of tolerant training: stock torch kernels."""
        return NativeExecutor(task.aten, torch_device(self.device))

    def rehearse(self, task_id: bytes) -> float:
        """Execute the first step as a training would; returns the seconds that it takes here. Done once.

        Raises:
            ProtocolError: this machine can't train the task.
        """
        if task_id not in self._rehearsed:
            task = self.task(task_id)
            is_exact = self.market.registry.terms(task_id).is_exact
            step = first_step_of(task, None if is_exact else self.executor(task), self.times.executors)
            self._rehearsed[task_id] = time_work(step, self.times.timer)
        return self._rehearsed[task_id]

    @cached_property
    def _rehearsed(self) -> dict[bytes, float]:
        return {}

    def train(
        self, task_id: bytes, on_checkpoint: OnCheckpoint | None = None, progress_every: int = 4
    ) -> LearningProof:
        """Train, post the checkpoint log's root on chain as it grows, and commit the learning proof.

        An interrupted training resumes from the checkpoint posted last.

        ``on_checkpoint(index, segments)`` is called after every checkpoint; every ``progress_every``-th is posted.

        Raises:
            TrainingDivergedError: the loss isn't finite any more.
        """
        task = self.task(task_id)
        recorder, segments = TaskRecorder(self.store, task), task.document.segments
        posted, kept = self.market.proofs.proof(task_id).size, self._kept_as(task_id)
        last = recorder.resume(kept)

        def record(index: int, state: list[Words]) -> None:
            nonlocal posted
            recorder(index, state)
            if index % progress_every == progress_every - 1 and index < segments:
                # Kept before it is posted, so that training can resume from what is on chain.
                recorder.keep(kept)
                size, log = index + 1, recorder.log
                consistency = log.consistency(posted) if posted else []
                self.market.proofs.post(self.wallet, task_id, size, log.root(), consistency)
                posted = size
            if on_checkpoint is not None:
                on_checkpoint(index, segments)

        is_exact = self.market.registry.terms(task_id).is_exact
        if is_exact:
            train_canonically(task, record, last, self.times.executors, recorder.expect)
        else:
            train(task, self.executor(task), record, last, self.device, recorder.expect)
        digest, _ = recorder.publish(environment(is_exact))
        return self.commit(task_id, digest)

    def _kept_as(self, task_id: bytes) -> str:
        """The name of the training's resume file, unique to the task and this solver."""
        return f"training-{keccak256(task_id + bytes.fromhex(self.wallet.address[2:])).hex()}.json"

    @cached_property
    def unpublished(self) -> dict[tuple[bytes, int], dict[int, int]]:
        """By training: the log entries not yet seen in the store again, and the second before which each is left."""
        return {}

    def serve(self, task_id: bytes) -> None:
        """Publish one committed state again that is missing in the store; look for it for a while at most.

        The rest is left to later calls: a clock may run meanwhile. An entry that fails is put behind the others.

        Raises:
            OperationalError: it is neither in the store nor on this party's own disk, or the store failed.
        """
        checkpoints, began, now = self.proof(task_id).checkpoints, self.times.timer(), self.connection.now()
        training = task_id, self.market.registry.task(task_id).began
        left = self.unpublished.setdefault(training, dict.fromkeys(range(len(checkpoints)), 0))
        for entry in [entry for entry, since in left.items() if since <= now]:
            name = checkpoints[entry].object
            left[entry] = now + AGAIN
            # The store itself: a copy on this party's own disk serves nobody.
            is_there = Store.exists(self.store, name)
            if not is_there:
                self.store.put(self.store.get(name))
            del left[entry]
            if not is_there or self.times.timer() - began > SERVING:
                return

    def commit(self, task_id: bytes, digest: str) -> LearningProof:
        """Commit a learning proof from the store, e.g. of a user's own loop (`Recorder.learning_proof`).

        Raises:
            ProtocolError: it isn't a complete proof of this task, its log doesn't extend the posted roots, or the task
                asks for an exact training and the proof says nothing of the kind.
        """
        proof = learning_proof.load(self.store, digest, self.task(task_id))
        if self.market.registry.terms(task_id).is_exact and not proof.is_exact:
            raise ProtocolError(
                f"the task compares bits, and proof {digest} is of a training with torch's own: take its steps with "
                "pol.exact (docs/guides/exact.md), or lose the stake"
            )
        log = CheckpointLog([entry.state_root for entry in proof.checkpoints])
        posted = self.market.proofs.proof(task_id).size
        consistency = log.consistency(posted) if posted else []
        arguments = (len(proof.checkpoints), log.root(), consistency, bytes.fromhex(digest), log.inclusion(0))
        self.market.proofs.commit(self.wallet, task_id, *arguments)
        return proof


def first_step_of(
    task: LoadedTask, executor: StepExecutor | None, executors: ExecutorFactory = on_all_cores
) -> Callable[[], object]:
    """A call that executes the first step of a task: natively, or with the defined bits without an executor."""
    if executor is None:
        canonical, first = executors(task.program, task.constants), task.initial_state
        return lambda: canonical.advance(first, 0)
    constants, state = tensors(task)
    return lambda: executor.run(state, constants, 0)


def train_canonically(
    task: LoadedTask,
    on_checkpoint: Callable[[int, list[Words]], None],
    last: tuple[int, list[Words]] | None = None,
    executors: ExecutorFactory = on_all_cores,
    on_root: Callable[[bytes], None] | None = None,
) -> None:
    """Train all steps with the defined bits, as exact mode requires; ``on_checkpoint`` and ``last`` as in `train`.

    On a device the state stays in its memory between checkpoints, and ``on_root`` gets the root that it computes of
    each, before the checkpoint.
    """
    document = task.document
    executor = executors(task.program, task.constants)
    index, start = last or (0, task.initial_state)
    if last is None:
        on_checkpoint(0, start)
    first = index * document.interval
    steps = document.steps - first
    states = replay_every(task.program, executor, start, first, steps, document.interval, on_root=on_root)
    del start, last  # large states are in memory once
    for number, state in enumerate(states, index + 1):
        on_checkpoint(number, state)
