"""The complete state of a training in the record of a store: taken, stored, put back and compared."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import Tensor

from pol.commitments.array import Array, Bytes
from pol.commitments.complete_state import CompleteState, StateEntry
from pol.errors import ProtocolError
from pol.execution.device.open_device import CPU, is_gpu, open_device
from pol.execution.device.roots import DeviceRoots
from pol.execution.device.tensor_words import buffer_of
from pol.training.exact.exact_step import ExactStep
from pol.training.lineage.base_training import StartOfRecord
from pol.training.record import learning_record, newest_checkpoint, signed_heads
from pol.training.record.learning_record import GIVEN, LearningRecord, RecordedCheckpoint
from pol.training.record.recorded_run import COMPONENT, PROGRESS
from pol.training.recorder.recorded_task import RecordedTask
from pol.training.recorder.recorder_options import Checkpoints
from pol.training.state import components, readable, tensors
from pol.training.state.tensors import of_tensor
from pol.training.state.trainer_state import TrainerState
from pol.training.storage import checkpoint_tensors, stored_checkpoint
from pol.training.storage.store import Store
from pol.training.task.learning_proof import ARITHMETIC, CANONICAL

LEAST_BYTES = 1 << 16
"""Smaller tensors are hashed here while a device would still be asked."""


def hashed_on(name: str, least: int = LEAST_BYTES) -> Callable[[Tensor, str], Array]:
    """What takes the bytes of a tensor, as `of_tensor`, with its tree if the device holds it.

    Raises:
        OperationalError: the device can't be used.
    """
    device = open_device(name)
    roots, holder = DeviceRoots(device), "cuda" if is_gpu(name) else "cpu"

    def take(tensor: Tensor, path: str) -> Array:
        array = of_tensor(tensor, path)
        if tensor.device.type != holder or array.type.nbytes < least:
            return array
        (tree,) = roots.tensor_trees([-(-array.type.nbytes // 4)], [buffer_of(tensor)])
        return replace(array, tree=tree)

    return take


class Background:
    """Runs jobs one after another beside the caller, at most one at a time."""

    _all: ClassVar[WeakSet[Background]] = WeakSet()

    def __init__(self) -> None:
        self._all.add(self)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pol-recorder")
        self._running: Future[None] | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Wait for the previous job and raise its error if it failed; else start this one."""
        self.wait()
        self._running = self._pool.submit(job)

    def check(self) -> None:
        """Raise the error of a failed job, without waiting."""
        if self._running is not None and self._running.done():
            self.wait()

    def wait(self) -> None:
        """Wait for the job, and raise its error if it failed. An error is raised once."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    @classmethod
    def wait_for_all(cls) -> None:
        """Wait for jobs of the whole process; errors stay where they are."""
        futures.wait([one._running for one in cls._all if one._running is not None])


class Staging:
    """Reused memory for copies of arrays, so that the training may change the originals."""

    def __init__(self) -> None:
        self._buffers: dict[str, Bytes] = {}

    def copies(self) -> Callable[[str, Array], Array]:
        """Copies arrays by name, one at a time; the copies live until this is called again."""
        known, self._buffers = self._buffers, {}

        def copy(name: str, array: Array) -> Array:
            buffer = known.pop(name, None)
            if buffer is None or buffer.size != array.data.size:
                buffer = np.empty(array.data.size, np.uint8)
            np.copyto(buffer, array.data)
            self._buffers[name] = buffer
            return Array(array.type, buffer, array.tree)

        return copy


_GRADIENTS = re.compile(r"cursor/(ranks/\d+/)?gradients/")


class RecordedTraining:
    """A training's state beside its record; the number of steps is that of the loop."""

    def __init__(
        self,
        store: Store,
        state: TrainerState,
        every: int,
        options: Checkpoints,
        task: RecordedTask | None,
        start: StartOfRecord | None,
        key: Ed25519PrivateKey | None,
    ) -> None:
        self.store, self.state, self.every = store, state, every
        self.record = LearningRecord(os.urandom(32), GIVEN, every, ())
        self._task, self._start, self._key, self._options = task, start, key, options
        self._exact = next((part for part in state.parts.values() if isinstance(part, ExactStep)), None)
        self._steps, self._recorded = 0, -1
        self._bytes_of = tensors.of_tensor if options.device == CPU else hashed_on(options.device)
        self._background = Background() if options.background else None
        self._staging, self._base_staging = Staging(), Staging()
        self._base: stored_checkpoint.UpdateBase | None = None
        self._tried: LearningRecord | None = None

    def _restore(self) -> bool:
        """Whether there was a checkpoint; if not, the start is recorded."""
        Background.wait_for_all()  # a recorder that was left, as by an interrupted cell of a notebook, may still store
        self.store.clean()
        found = newest_checkpoint.load_newest_checkpoint(self.store, self._read)
        if found is None:
            if self._start is not None:
                start = self._start.begin(self.state.model, self.store)
                self.record = dataclasses.replace(self.record, start=start)
            self._checkpoint()
            if self._task is not None:
                self._wait()  # a state that doesn't fit the task stops the training before it begins
            return False
        self.record = found.record
        signed_heads.require_signer(self.record, self._key)
        if self.record.interval != self.every:
            raise ProtocolError(
                f"the run was recorded every {self.record.interval} steps, not every {self.every}: keep the interval, "
                "or record into another store"
            )
        state = dict(found.components)
        self._steps = self._recorded = int(state.pop(PROGRESS)["steps"])
        if self._task is not None:
            self._task.load(state.pop(COMPONENT, None))
        self.state.load(state)
        return True

    def _differing(self) -> list[str]:
        """Arrays and values that aren't those of the newest checkpoint; versions and hardware may differ."""
        saved = stored_checkpoint.load_document(self.store, self.record.checkpoints[-1].object)
        entries, documents = self._whole(self._now())
        known, now = ({entry.name: entry for entry in found} for found in (saved.entries, entries))
        odd = [name for name in sorted(known.keys() | now.keys()) if known.get(name) != now.get(name)]
        odd = [name for name in odd if name.partition("/")[0] not in ("environment", COMPONENT)]
        one, other = (
            readable.flat({name: held[name] for name in odd if name in held}) for held in (saved.documents, documents)
        )
        values = [path for path in {**one, **other} if one.get(path) != other.get(path) and not _GRADIENTS.match(path)]
        return [*(name for name in odd if "/" in name), *values]

    def _not_restored(self, names: Sequence[str]) -> ProtocolError:
        return ProtocolError(
            f"{', '.join(names[:3])} isn't what the checkpoint of step {self._steps} commits to, after it was put "
            "back: an object restores another state than it gave, a file is corrupt, or a tensor is spread otherwise. "
            "Let load_state_dict restore all that state_dict gives"
        )

    def _whole(self, state: CompleteState) -> tuple[Sequence[StateEntry], Mapping[str, bytes]]:
        """Entries and documents of a state of this recorder."""
        return state.entries, state.documents

    def _wait(self) -> None:
        """Wait until all checkpoints that were taken so far are stored."""
        if self._background is not None:
            self._background.wait()

    def _checkpoint(self) -> None:
        """Record the present state; the copy is taken before this returns."""
        self._keep(self._captured())

    def _captured(self, held: bool = False) -> tuple[int, CompleteState]:
        """The number of steps, and the present state or a copy of it; a copy if it's held while steps go on."""
        self._recorded = self._steps
        self._wait()
        if self._background is None and not self._options.updates:
            now, copy = self._now(), self._staging.copies()
            return self._steps, dataclasses.replace(
                now, arrays={n: copy(n, a) for n, a in now.arrays.items()}
            ) if held else now
        # One tensor at a time, so that of a state on a device, which is brought here, no two copies are here.
        threads = 0 if self._background is None else 1
        return self._steps, components.encode(self._components(), threads, self._bytes_of, self._staging.copies())

    def _keep(self, taken: tuple[int, CompleteState]) -> None:
        if self._background is None:
            self._store(*taken)
        else:
            self._background.start(lambda: self._store(*taken))

    def _read(self, store: Store, saved: stored_checkpoint.StoredCheckpoint) -> AbstractContextManager[CompleteState]:
        return checkpoint_tensors.open_state(store, saved)

    def _components(self) -> dict[str, object]:
        found: dict[str, Any] = {**self.state.components(), PROGRESS: {"steps": self._steps}}
        if self._task is not None and self._is_exact:
            found["environment"] |= {ARITHMETIC: CANONICAL}
        return found

    @property
    def _is_exact(self) -> bool:
        """Whether a `pol.exact` among the parts has taken all steps."""
        return self._exact is not None and self._exact.number == self._steps

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
