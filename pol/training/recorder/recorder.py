"""The recorder: three lines in a training loop make its checkpoints verifiable and its resumption exact.

recorder = Recorder("runs/first", model, optimizer, every=100, scheduler=scheduler)
for epoch in range(recorder.resume(), epochs):
    for batch in recorder.batches(loader):
        ...
        recorder.step()
recorder.close()
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from torch import nn
from torch.optim import Optimizer

from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError, UnsupportedError
from pol.training.lineage.base_training import FromTask, StartOfRecord
from pol.training.record import learning_record, newest_checkpoint, signed_heads
from pol.training.record.learning_record import GIVEN, LearningRecord, RecordedCheckpoint
from pol.training.recorder import task_trail
from pol.training.recorder.background_job import Background, Staging
from pol.training.recorder.rehearsal import Rehearsal, store_of
from pol.training.recorder.task_trail import TaskTrail
from pol.training.state import components
from pol.training.state.random_state import Generator, RandomSources
from pol.training.state.trainer_state import Stateful, TrainerState
from pol.training.storage import saved_state, sealing
from pol.training.storage.sealing import SealedStore
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task import LoadedTask
from pol.training.task.task_training import environment

Batch = TypeVar("Batch")
PROGRESS = "progress"


class Recorder:
    """Records the complete state of a training every so many steps.

    store: a `Store` or its URL. parts: further stateful objects by name. generators: random generators of one's own.
    gradients: whether a checkpoint may fall between backward passes that add up. asynchronous: a checkpoint is copied
    and then hashed and stored beside the training; False keeps no second copy of the state, and the training waits.
    updates: checkpoints hold what changed since the one before, with every ``full_every``-th one in full; the state is
    then kept in memory twice beside the training. recipients: X25519 public keys; checkpoints are sealed to them, and
    to ``opening_key``, with which a run is resumed: a key or its PEM file (`pol.training.storage.sealing`).
    start: what a new run begins with, if not with what the model holds: `base_training.from_record`
    and `from_initialisation`. task: what the loop trains; the model gets its initial state, a checkpoint is due every
    interval, and `learning_proof` gives the proof at the end.
    key: signs the head of the log whenever the record is published; a key or its PEM file. entropy: where the run's
    name comes from; for tests.

    Raises:
        UnsupportedError: an object that can't say its state.
        ProtocolError: the store holds something else than a learning record.
        OperationalError: the store failed.
    """

    def __init__(
        self,
        store: Store | str,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        *,
        every: int | None = None,
        scheduler: Stateful | None = None,
        scaler: Stateful | None = None,
        parts: Mapping[str, Stateful] | None = None,
        generators: Mapping[str, Generator] | None = None,
        gradients: bool = False,
        asynchronous: bool = True,
        updates: bool = False,
        full_every: int = 10,
        recipients: Sequence[bytes] = (),
        opening_key: X25519PrivateKey | str | Path | None = None,
        start: StartOfRecord | None = None,
        task: LoadedTask | None = None,
        key: Ed25519PrivateKey | str | Path | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
    ):
        interval = 100 if task is None else task.document.interval
        every = interval if every is None else every
        if task is not None and every != interval:
            raise ProtocolError(
                f"the task asks for a checkpoint every {interval} steps, not every {every}: leave it out"
            )
        if task is not None and start is not None:
            raise ProtocolError("a task says what it begins with: leave out the start")
        self._rehearsal = Rehearsal.of(os.environ)
        if self._rehearsal is not None:
            every, key = self._rehearsal.every, None
        if every < 1:
            raise ProtocolError(f"a checkpoint every {every} steps makes no sense: give 1 or more")
        if not 1 <= full_every <= saved_state.MAX_UPDATES:
            raise ProtocolError(f"one checkpoint in {full_every} in full: give 1 to {saved_state.MAX_UPDATES}")
        self.store = store_of(store)
        if recipients or opening_key is not None:
            if task is not None:
                raise ProtocolError("a task's checkpoints are for everybody who verifies it: leave out the recipients")
            opening = None if opening_key is None else sealing.load_key(opening_key)
            self.store = SealedStore(self.store, recipients, opening, entropy)
        given = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, **(parts or {})}
        stateful = {name: part for name, part in given.items() if part is not None}
        if reserved := stateful.keys() & {PROGRESS, task_trail.COMPONENT}:
            raise UnsupportedError(f"{sorted(reserved)[0]!r} can't be the name of a part: choose another identifier")
        self.state = TrainerState(model, stateful, RandomSources(generators), gradients=gradients)
        self._trail = None if task is None else TaskTrail(self.store, task, self.state.updated("optimizer"))
        self._start: StartOfRecord | None = start if task is None else FromTask(task)
        self._key = None if key is None else signed_heads.load_key(key)
        self.every = every
        self.steps = 0
        self._recorded = -1
        self.record = LearningRecord(entropy(32), GIVEN, every, ())
        self._background = Background() if asynchronous else None
        self._staging, self._base_staging = Staging(), Staging()
        self._updates = updates
        self._full_every = full_every
        self._base: saved_state.Base | None = None
        self._tried: LearningRecord | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the data cursor is in, counted from 0."""
        return self.state.cursor.epoch

    def resume(self) -> int:
        """Go on from the newest checkpoint in the store, or record the start if there is none; the epoch to go on in.

        Raises:
            ProtocolError: the record is that of another trainer, or a checkpoint isn't what the record says.
            OperationalError: the store failed.
        """
        self.store.clean()
        found = newest_checkpoint.load(self.store, self._read)
        if found is None:
            if self._start is not None:
                start = self._start.begin(self.state.model, self.store)
                self.record = dataclasses.replace(self.record, start=start)
            self._checkpoint()
            if self._trail is not None:
                self.flush()  # what doesn't fit the task is said before the training begins
            return self.epoch
        self.record = found.record
        signed_heads.require_signer(self.record, self._key)
        if self.record.interval != self.every:
            raise ProtocolError(
                f"the run was recorded every {self.record.interval} steps, not every {self.every}: keep the interval, "
                "or record into another store"
            )
        state = dict(found.components)
        self.steps = self._recorded = int(state.pop(PROGRESS)["steps"])
        if self._trail is not None:
            self._trail.load(state.pop(task_trail.COMPONENT, None))
        self.state.load(state)
        if self._rehearsal is not None:
            self._rehearsal.note_restored(state, self.state.components())
        return self.epoch

    def batches(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of one epoch; after `resume`, the rest of the epoch that the checkpoint left."""
        return self.state.cursor.batches(loader)

    def step(self) -> None:
        """A step is over: the optimizer and the scheduler have run. Records a checkpoint if it's time.

        Raises:
            OperationalError: an earlier checkpoint, or this one, could not be stored. It is missing from the record;
                what was recorded before is whole, and so is the training in memory: whoever catches the error goes on.
        """
        if self._recorded < 0:
            raise ProtocolError(
                "call resume() before the first step: it records the start, or goes on from a checkpoint"
            )
        self.steps += 1
        if self._background is not None:
            self._background.check()
        if self.steps % self.every == 0:
            self._checkpoint()
        if self._rehearsal is not None:
            self._rehearse(self._rehearsal)

    def flush(self) -> None:
        """Wait until what has been recorded is stored.

        Raises:
            OperationalError: the store failed.
        """
        if self._background is not None:
            self._background.wait()

    def close(self) -> LearningRecord:
        """Record the last steps, if they aren't yet, and give the record. May be called again after an error.

        Raises:
            OperationalError: the store failed; the last steps are tried even if an earlier checkpoint had failed.
        """
        try:
            self.flush()
        finally:
            checkpoints = self.record.checkpoints
            if self._recorded >= 0 and (not checkpoints or checkpoints[-1].step != self.steps):
                self._checkpoint()
                self.flush()
        return self.record

    def learning_proof(self) -> tuple[str, LearningProof]:
        """The learning proof of the task, once all of its steps are done; its digest and itself. For the market.

        Raises:
            ProtocolError: no task is recorded, or its training isn't finished.
            OperationalError: the store failed.
        """
        if self._trail is None:
            raise ProtocolError("only the training of a task has a learning proof: give the recorder the task=")
        self.flush()
        return self._trail.proof(environment())

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A failed training ends at its last checkpoint: what came after may be half a step.
        if kind is None:
            self.close()
        else:
            self.flush()

    def _rehearse(self, rehearsal: Rehearsal) -> None:
        """What `pol doctor` asks for after a step."""
        rehearsal.note(self.steps, self.state)
        if rehearsal.is_over(self.steps):
            self.flush()
            rehearsal.end(self.steps)

    def _checkpoint(self) -> None:
        """Record the state as it is now; the copy is taken before this returns."""
        self._recorded = steps = self.steps
        self.flush()
        state = self._now()
        if self._background is not None or self._updates:
            copies = self._staging.copy(state.arrays)
            state = CompleteState(copies, state.documents, threads=0 if self._background is None else 1)
        if self._background is None:
            self._store(steps, state)
        else:
            self._background.start(lambda: self._store(steps, state))

    def _read(self, store: Store, saved: saved_state.SavedState) -> CompleteState:
        return saved_state.load(store, saved)

    def _now(self) -> CompleteState:
        return components.encode({**self.state.components(), PROGRESS: {"steps": self.steps}})

    def _store(self, steps: int, state: CompleteState) -> None:
        if self._trail is not None:
            state = self._trail.record(steps, state)
        base = self._base
        if base is not None and base.updates + 1 >= self._full_every:
            base = None
        digest, saved = saved_state.save(self.store, steps, state, base)
        self._publish(RecordedCheckpoint(steps, saved.root, digest))
        if self._updates:
            self._base = saved_state.Base(digest, state, 0 if base is None else base.updates + 1)
            self._staging, self._base_staging = self._base_staging, self._staging

    def _publish(self, checkpoint: RecordedCheckpoint) -> None:
        name, limit = learning_record.HEAD, learning_record.DOCUMENT_LIMIT
        found = self.store.read(name, limit=limit) if self.store.holds(name) else None
        if self._tried is not None and found == self._tried.encode():
            # The store said that it had failed, after it had done what it was asked for.
            self.record = self._tried
            if self.record.checkpoints[-1] == checkpoint:
                return
        if found != (self.record.encode() if self.record.checkpoints else None):
            raise ProtocolError(
                f"another process records into {self.store.url}: stop one of the two, or give each a store of its own"
            )
        record = self.record.extended(checkpoint)
        if self._key is not None:
            record = signed_heads.sign(record, self._key)
        self._tried = record
        learning_record.publish(self.store, record)
        self.record = record
