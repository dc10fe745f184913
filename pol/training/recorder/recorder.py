"""The recorder: three lines in a training loop make its checkpoints verifiable and its resumption exact.

recorder = Recorder("runs/first", model, optimizer, every=100, scheduler=scheduler)
for epoch in range(recorder.resume(), epochs):
    for batch in recorder.batches(loader):
        ...
        recorder.step()
recorder.close()
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn
from torch.optim import Optimizer

from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError
from pol.training.lineage.base_training import FromTask, StartOfRecord
from pol.training.record.learning_record import LearningRecord
from pol.training.recorder.doctor_control import Rehearsal, store_of
from pol.training.recorder.drawn_by_hand import DrawnByHand
from pol.training.recorder.optimizer_steps import OptimizerSteps
from pol.training.recorder.recorded_task import RecordedTask
from pol.training.recorder.recorded_training import RecordedTraining
from pol.training.recorder.recorder_options import DEFAULT, Checkpoints, Sealing, interval, trainer_state
from pol.training.recorder.unrecorded_state import users_frames
from pol.training.state.draws import OTHER_DATA
from pol.training.state.random_state import Generator
from pol.training.state.trainer_state import Stateful
from pol.training.storage.key_file import load_signing_key
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_training import environment

Batch = TypeVar("Batch")


class Recorder(RecordedTraining):
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
        self._goes_on: dict[FrameType, int | None] = {}
        self._asked = interval(every, task)
        every_taken = self._asked if self._rehearsal is None else 1
        if task is not None and start is not None:
            raise ProtocolError("a task says what it begins with: leave out the start")
        if task is not None and sealing is not None:
            raise ProtocolError("every verifier of a task reads its checkpoints: leave out sealing=")
        self.store = store_of(store, self._first_process())
        if sealing is not None:
            self.store = sealing.over(self.store)
        self.state = trainer_state(model, optimizer, scheduler, scaler, parts or {}, checkpoints.gradients)
        followed = None if task is None else RecordedTask(self.store, task, self.state.updated("optimizer"))
        begun = start if task is None else FromTask(task)
        signing = None if key is None or self._rehearsal is not None else load_signing_key(key)
        super().__init__(self.store, self.state, every_taken, checkpoints, followed, begun, signing)
        self._updates = OptimizerSteps(self.state)
        self._by_hand = DrawnByHand(self.state.random, self.state.parts.values())
        self._is_due, self._begun = False, 0
        self._held: tuple[int, CompleteState] | None = None

    @property
    def steps(self) -> int:
        """Steps that were taken. A loop without a loader goes on from them."""
        self._by_hand.has_asked = True
        return self._steps

    @property
    def epoch(self) -> int:
        """The epoch that the data cursor is in, counted from 0."""
        return self.state.data.epoch

    def resume(self, allow: str = "") -> int:
        """Continue from the newest checkpoint in the store, or record the start if there is none; the epoch to run.

        The restored state is hashed and compared with the checkpoint, here and again where the loop draws its first
        batch: what the loop has changed until then is put back. allow: "other data" goes on if the used batches, drawn
        again, are others.

        Raises:
            ProtocolError: the record of another trainer, a checkpoint that doesn't fit the record, or an object that
                doesn't restore the state that it gave.
        """
        if allow not in ("", OTHER_DATA):
            raise ProtocolError(f"resume(allow={allow!r}): give {OTHER_DATA!r} or nothing")
        data = self.state.data
        data.allows_other, data.thread = bool(allow), threading.get_ident()
        data.arrived, data.before_draw = self._arrived, self._before_draw
        self.state.cleared.reporting = self._reporting
        with self._reporting():
            if self._rehearsal is not None:
                self._rehearsal.begin()
                self._goes_on = dict.fromkeys(users_frames())
            if self._restore() and (wrong := self._differing()):
                raise self._not_restored(wrong)
        data.until_due, self._begun = self.every - self._steps % self.every, self._steps
        if self._steps:
            self._by_hand.resume()
            self.state.cleared.follow(not data.stepped, is_resumed=True)
        return self.epoch

    def batches(
        self,
        loader: Iterable[Batch],
        *,
        name: str = "data",
        length: int | None = None,
        uneven: bool = False,
        place: Stateful | None = None,
    ) -> Iterator[Batch]:
        """The batches of one epoch; after `resume`, the rest of the checkpoint's epoch.

        The used batches are drawn again and compared. A due checkpoint is taken here, before the next batch is drawn;
        that of an epoch's end as the next epoch begins, after all that the loop does at the end of an epoch.

        name: of the loader, if there are several. length: batches of an epoch, if the loop leaves it earlier. uneven:
        steps take different numbers of batches. place: the part that goes to the loader's place, if it isn't itself.

        Raises:
            ProtocolError: the batches aren't those that were used, or something holds batches back.
        """
        return self._draw(loader, name=name, length=length, uneven=uneven, place=place)

    def enumerate(self, loader: Iterable[Batch], **options: Any) -> Iterator[tuple[int, Batch]]:
        """As `batches`, with the number of each batch in its epoch, which a resumption doesn't set back to 0."""
        name = options.get("name", "data")
        for batch in self._draw(loader, counted=True, **options):
            yield self.state.data.loaders[name].batch - 1, batch

    def _draw(self, loader: Iterable[Batch], place: Stateful | None = None, **options: Any) -> Iterator[Batch]:
        own: object = loader
        place = place or next((part for part in self.state.parts.values() if part is own), None)
        drawn = self.state.data.batches(loader, place=place, **options)
        return drawn if self._rehearsal is None else self._rehearsal.reported(drawn)

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
        if self._task is not None and self._steps == self._task.task.document.steps:
            raise ProtocolError(
                f"the task ends after {self._steps} steps: leave the loop there; its checkpoints and proof are whole"
            )
        with self._reporting():
            if self._background is not None:
                self._background.check()
            self._step()
        if self._rehearsal is not None:
            self._rehearse(self._rehearsal)

    def _step(self) -> None:
        data = self.state.data
        if self._is_due:
            if self._held is not None and (data.has_drawn or data.stepped not in data.open):
                self._keep(self._held)  # the loop has gone on with another loader, or draws by hand now
            elif self._rehearsal is None or self._steps % self._asked == 0:
                raise ProtocolError(
                    f"steps {self._steps} and {self._steps + 1} were taken with one batch, so the checkpoint of step "
                    f"{self._steps} couldn't be resumed: let every= be a multiple of the steps that a batch takes"
                )
            else:
                self._is_due, self._held = False, None  # the program itself doesn't record this step
        self.state.cleared.end_step()
        self._updates.require_recorded()
        self._by_hand.note_step(self._steps + 1, bool(data.stepped or data.open))
        self._steps += 1
        data.note_step()
        if self._task is not None and self._steps == 1:
            self._task.require_first_step(self._now())
        data.until_due = self.every - self._steps % self.every
        if not data.stepped:
            self._follow_gradients()
        if self._steps % self.every:
            return
        self._is_due = True
        if not data.stepped:
            self._checkpoint()  # the loop draws by hand
        elif not data.open:
            self._held = self._captured(held=True)

    def _before_draw(self, name: str, begins: bool) -> Callable[[], None] | None:
        """A due checkpoint is taken where the loop draws. A loader without steps so far may be for validation."""
        if self._rehearsal is not None:
            self._goes_on = {frame: frame.f_lasti for frame in users_frames()}
        data = self.state.data
        if self._steps == 1 and name == data.stepped and not data.has_drawn:
            self._follow_gradients()
        if not self._is_due or not data.stepped:
            return None
        if name != data.stepped or (not begins and data.is_ending(name)):
            # A batch may be drawn for nothing, and a state with a batch in hand can't be resumed.
            if (begins or self._held is None) and not data.has_drawn:
                self._held = self._captured(held=True)
            return None
        taken = self._captured()
        self._follow_gradients()
        return lambda: self._keep(taken)

    def _arrived(self) -> None:
        """The loop draws for the first time: nothing may have changed since `resume`."""
        self.state.cleared.put_back()
        self.state.cleared.follow(by_hand=False, is_resumed=True)
        if not (changed := self._differing()):
            return
        warnings.warn(
            f"{', '.join(changed[:3])} had changed between resume() and the first batch, and is put back as it was "
            "recorded there. If batches or steps use what was drawn or computed meanwhile, draw it from a generator "
            "that is seeded with the epoch, or make it a part",
            stacklevel=2,
        )
        with self._reporting():
            self._restore()
            if wrong := self._differing():
                raise self._not_restored(wrong)

    def flush(self) -> None:
        """Wait until all checkpoints that were taken so far are stored; one that is due is taken at the next batch."""
        self._wait()

    def _finish(self) -> None:
        """Take a checkpoint that is due, as no batch may be drawn any more, and wait for all."""
        if self._is_due:
            self._checkpoint()
        self.flush()

    def close(self) -> LearningRecord:
        """Record the last steps if needed; the record. May be called again after an error.

        Raises:
            OperationalError: the store failed; the last steps are tried even after a failed checkpoint.
        """
        self._updates.release()
        self.state.cleared.release()
        try:
            self.flush()
        finally:
            checkpoints = self.record.checkpoints
            if self._recorded >= 0 and (not checkpoints or checkpoints[-1].step != self._steps):
                self._checkpoint()
                self.flush()
        return self.record

    def learning_proof(self) -> tuple[str, LearningProof]:
        """The learning proof of the finished task, for the market; its digest and itself.

        If a `pol.exact` among the parts has taken all steps, the proof says that the training is exact.

        Raises:
            ProtocolError: no task is recorded, or its training isn't finished.
        """
        if self._task is None:
            raise ProtocolError("only the training of a task has a learning proof: give the recorder the task=")
        self._finish()
        return self._task.proof(environment(self._is_exact))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A failed training ends at its last checkpoint, as the present step may be incomplete.
        if kind is None:
            self.close()
        else:
            self._is_due = False
            self.flush()

    def _first_process(self) -> int | None:
        """The first of several processes that record together; None if this one records alone."""
        return None

    def _reporting(self) -> AbstractContextManager[None]:
        """Errors inside are reported to `pol doctor`."""
        return nullcontext() if self._rehearsal is None else self._rehearsal.reporting()

    def _follow_gradients(self) -> None:
        by_hand, is_needed = not self.state.data.stepped, self._steps % self._asked == 0
        is_noted = not by_hand or is_needed or self._steps == 1
        if is_noted or self._steps == self._begun + 1:  # a rehearsal records others, too
            self.state.cleared.follow(by_hand, False, is_needed, is_noted=is_noted)

    def _keep(self, taken: tuple[int, CompleteState]) -> None:
        self._is_due, self._held = False, None
        super()._keep(taken)

    def _rehearse(self, rehearsal: Rehearsal) -> None:
        """Report to `pol doctor` after a step, and end the program if it asks."""
        is_over = rehearsal.is_over(self._steps)
        if self._steps == rehearsal.kill:
            self.flush()
        elif is_over:
            self._finish()
        rehearsal.note(self._steps, self.state, self._goes_on)
        if is_over:
            rehearsal.end(self._steps)
