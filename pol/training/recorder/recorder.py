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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn
from torch.optim import Optimizer

from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.device.open_device import CPU
from pol.training.exact.exact_step import ExactStep
from pol.training.lineage.base_training import FromTask, StartOfRecord
from pol.training.record import learning_record, newest_checkpoint, signed_heads
from pol.training.record.learning_record import GIVEN, LearningRecord, RecordedCheckpoint
from pol.training.record.proof_of_record import COMPONENT
from pol.training.recorder.background_job import Background, Staging
from pol.training.recorder.doctor_control import Rehearsal, store_of
from pol.training.recorder.recorded_task import RecordedTask
from pol.training.recorder.recorder_options import DEFAULT, Checkpoints, Sealing
from pol.training.state import components, tensors
from pol.training.state.device_arrays import hashed_on
from pol.training.state.random_state import Generator, RandomSources
from pol.training.state.trainer_state import Stateful, TrainerState
from pol.training.storage import checkpoint_tensors, stored_checkpoint
from pol.training.storage.key_file import load_signing_key
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_training import environment

Batch = TypeVar("Batch")
PROGRESS = "progress"


class Recorder:
    """Records the complete state of a training every so many steps.

    store: a `Store` or its URL.
    every: steps between two checkpoints; 100, or the interval of the task.
    parts: further state by name: objects with ``state_dict`` and ``load_state_dict``, and random generators.
    task: the task that the loop trains. The model gets its initial state, a checkpoint is due every interval, and
    `learning_proof` gives the proof at the end.
    start: the source of a new run's weights, if not the model: `base_training.from_record`, `from_initialization`.
    key: signs the head of the log with each published record; an Ed25519 key or its PEM file.
    checkpoints, sealing: how checkpoints are stored, and who can open them.

    Raises:
        UnsupportedError: an object that can't give its state.
        ProtocolError: options that exclude each other, or the store holds something else than a learning record.
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
        parts: Mapping[str, Stateful | Generator] | None = None,
        task: LoadedTask | None = None,
        start: StartOfRecord | None = None,
        key: Ed25519PrivateKey | str | Path | None = None,
        checkpoints: Checkpoints = DEFAULT,
        sealing: Sealing | None = None,
    ):
        self._rehearsal = Rehearsal.of(os.environ)
        if task is not None and not isinstance(task, LoadedTask):
            raise ProtocolError(f"task= is a {type(task).__name__}: give a loaded task, pol.load(store, digest)")
        self.every = _interval(every, task, self._rehearsal)
        if task is not None and start is not None:
            raise ProtocolError("a task says what it begins with: leave out the start")
        if task is not None and sealing is not None:
            raise ProtocolError("every verifier of a task reads its checkpoints: leave out sealing=")
        self.store = store_of(store, self._first_process())
        if sealing is not None:
            self.store = sealing.over(self.store)
        self._exact = next((part for part in (parts or {}).values() if isinstance(part, ExactStep)), None)
        self.state = _trainer_state(model, optimizer, scheduler, scaler, parts or {}, checkpoints.gradients)
        self._task = None if task is None else RecordedTask(self.store, task, self.state.updated("optimizer"))
        self._start: StartOfRecord | None = start if task is None else FromTask(task)
        self._key = None if key is None or self._rehearsal is not None else load_signing_key(key)
        self.steps = 0
        self._recorded = -1
        self.record = LearningRecord(os.urandom(32), GIVEN, self.every, ())
        self._options = checkpoints
        self._bytes_of = tensors.of_tensor if checkpoints.device == CPU else hashed_on(checkpoints.device)
        self._background = Background() if checkpoints.background else None
        self._staging, self._base_staging = Staging(), Staging()
        self._base: stored_checkpoint.UpdateBase | None = None
        self._tried: LearningRecord | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the data cursor is in, counted from 0."""
        return self.state.cursor.epoch

    def resume(self) -> int:
        """Continue from the newest checkpoint in the store, or record the start if there is none; the epoch to run.

        Raises:
            ProtocolError: the record of another trainer, or a checkpoint that doesn't fit the record.
            OperationalError: the store failed.
        """
        with self._reporting():
            return self._resume()

    def _resume(self) -> int:
        if self._rehearsal is not None:
            self._rehearsal.begin()
        self.store.clean()
        found = newest_checkpoint.load_newest_checkpoint(self.store, self._read)
        if found is None:
            if self._start is not None:
                start = self._start.begin(self.state.model, self.store)
                self.record = dataclasses.replace(self.record, start=start)
            self._checkpoint()
            if self._task is not None:
                self.flush()  # a state that doesn't fit the task stops the training before it begins
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
        if self._task is not None:
            self._task.load(state.pop(COMPONENT, None))
        self.state.load(state)
        self._note_restored(state)
        return self.epoch

    def batches(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of one epoch; after `resume`, the rest of the checkpoint's epoch.

        A loader that is one of the parts goes to its place by itself; else the used batches are drawn and dropped.
        """
        own: object = loader
        is_part = any(part is own for part in self.state.parts.values())
        return self.state.cursor.batches(loader, keeps_place=is_part)

    def step(self) -> None:
        """End a step, after the optimizer and the scheduler; records a checkpoint if one is due.

        Raises:
            ProtocolError: it isn't resumed yet, or its task has ended.
            OperationalError: an earlier checkpoint, or this one, could not be stored and is missing from the record.
                Earlier ones and the training in memory are whole: catch the error to go on training.
        """
        if self._recorded < 0:
            raise ProtocolError(
                "call resume() before the first step: it records the start, or goes on from a checkpoint"
            )
        if self._task is not None and self.steps == self._task.task.document.steps:
            raise ProtocolError(
                f"the task ends after {self.steps} steps: leave the loop there; its checkpoints and proof are whole"
            )
        self.steps += 1
        with self._reporting():
            if self._background is not None:
                self._background.check()
            if self.steps % self.every == 0:
                self._checkpoint()
        if self._rehearsal is not None:
            self._rehearse(self._rehearsal)

    def flush(self) -> None:
        """Wait until all checkpoints so far are stored.

        Raises:
            OperationalError: the store failed.
        """
        if self._background is not None:
            self._background.wait()

    def close(self) -> LearningRecord:
        """Record the last steps if needed; the record. May be called again after an error.

        Raises:
            OperationalError: the store failed; the last steps are tried even after a failed checkpoint.
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
        """The learning proof of the finished task, for the market; its digest and itself.

        If a `pol.exact` among the parts has taken all steps, the proof says that the training is exact.

        Raises:
            ProtocolError: no task is recorded, or its training isn't finished.
            OperationalError: the store failed.
        """
        if self._task is None:
            raise ProtocolError("only the training of a task has a learning proof: give the recorder the task=")
        self.flush()
        is_exact = self._exact is not None and self._exact.number == self.steps
        return self._task.proof(environment(is_exact))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A failed training ends at its last checkpoint, as the present step may be incomplete.
        if kind is None:
            self.close()
        else:
            self.flush()

    def _first_process(self) -> int | None:
        """The first of several processes that record together; None if this one records alone."""
        return None

    def _reporting(self) -> AbstractContextManager[None]:
        """Errors inside are reported to `pol doctor`."""
        return nullcontext() if self._rehearsal is None else self._rehearsal.reporting()

    def _note_restored(self, loaded: Mapping[str, object]) -> None:
        if self._rehearsal is not None:
            self._rehearsal.note_restored(loaded, self.state.components())

    def _rehearse(self, rehearsal: Rehearsal) -> None:
        """Report to `pol doctor` after a step, and end the program if it asks."""
        is_over = rehearsal.is_over(self.steps)
        if is_over:
            self.flush()
        rehearsal.note(self.steps, self.state)
        if is_over:
            rehearsal.end(self.steps)

    def _checkpoint(self) -> None:
        """Record the present state; the copy is taken before this returns."""
        self._recorded = steps = self.steps
        self.flush()
        if self._background is not None or self._options.updates:
            # One tensor at a time, so that of a state on a device, which is brought here, no two copies are here.
            found, threads = self._components(), 0 if self._background is None else 1
            state = components.encode(found, threads, self._bytes_of, self._staging.copies())
        else:
            state = self._now()
        if self._background is None:
            self._store(steps, state)
        else:
            self._background.start(lambda: self._store(steps, state))

    def _read(self, store: Store, saved: stored_checkpoint.StoredCheckpoint) -> AbstractContextManager[CompleteState]:
        return checkpoint_tensors.open_state(store, saved)

    def _components(self) -> dict[str, object]:
        return {**self.state.components(), PROGRESS: {"steps": self.steps}}

    def _now(self) -> CompleteState:
        return components.encode(self._components(), 0, self._bytes_of)

    def _store(self, steps: int, state: CompleteState) -> None:
        if self._task is not None:
            state = self._task.record(steps, state)
        base = self._base
        if base is not None and base.updates + 1 >= self._options.full_every:
            base = None
        digest, saved = stored_checkpoint.save(self.store, steps, state, base)
        self._publish(RecordedCheckpoint(steps, saved.root, digest))
        if self._options.updates:
            self._base = stored_checkpoint.UpdateBase(digest, state, 0 if base is None else base.updates + 1)
            self._staging, self._base_staging = self._base_staging, self._staging

    def _publish(self, checkpoint: RecordedCheckpoint) -> None:
        name, limit = learning_record.HEAD, learning_record.DOCUMENT_LIMIT
        found = self.store.read(name, limit=limit) if self.store.holds(name) else None
        if self._tried is not None and found == self._tried.encode():
            # The store had reported a failure of a write that succeeded.
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


def _interval(every: int | None, task: LoadedTask | None, rehearsal: Rehearsal | None) -> int:
    """Steps between two checkpoints."""
    if task is not None and every not in (None, task.document.interval):
        raise ProtocolError(
            f"the task asks for a checkpoint every {task.document.interval} steps, not every {every}: leave it out"
        )
    if rehearsal is not None:
        every = rehearsal.every
    elif every is None:
        every = 100 if task is None else task.document.interval
    if every < 1:
        raise ProtocolError(f"a checkpoint every {every} steps makes no sense: give 1 or more")
    return every


def _trainer_state(
    model: nn.Module,
    optimizer: Optimizer | None,
    scheduler: Stateful | None,
    scaler: Stateful | None,
    parts: Mapping[str, Stateful | Generator],
    gradients: bool,
) -> TrainerState:
    generators = {name: part for name, part in parts.items() if isinstance(part, Generator)}
    named: dict[str, Stateful | None] = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    named |= {name: part for name, part in parts.items() if not isinstance(part, Generator)}
    if reserved := named.keys() & {PROGRESS, COMPONENT}:
        raise UnsupportedError(f"{sorted(reserved)[0]!r} can't be the name of a part: choose another identifier")
    stateful = {name: part for name, part in named.items() if part is not None}
    return TrainerState(model, stateful, RandomSources(generators), gradients=gradients)
