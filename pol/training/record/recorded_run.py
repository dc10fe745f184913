"""A recorded run, read from its store: the newest published record and its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord, RecordedCheckpoint
from pol.training.state import readable
from pol.training.storage.store import Store

if TYPE_CHECKING:
    from pol.training.storage.checkpoint_tensors import CheckpointTensors
    from pol.training.storage.stored_checkpoint import StoredCheckpoint

from pol.training.storage.stored_checkpoint import StoredCheckpoint

COMPONENT, PROGRESS = "task", "progress"
"""Documents of a recorded checkpoint: the task's checkpoints so far, and the number of steps."""
_SETTING = re.compile(r"environment/.*|cursor/(ranks/\d+/)?loaders/[^/]+/(began/size|others)")
_RATE = re.compile(r"[^/]+/(ranks/\d+/)?state/param_groups/\d+/lr")


@dataclass(frozen=True)
class RecordedRun:
    """A learning record and the store that holds its objects."""

    store: Store
    record: LearningRecord

    @property
    def steps(self) -> list[int]:
        """The steps with a checkpoint, in order."""
        return [checkpoint.step for checkpoint in self.record.checkpoints]

    def checkpoint(self, step: int | None = None) -> RecordedCheckpoint:
        """The checkpoint of a step, or the newest one. Raises OperationalError: the record has none."""
        found = [c for c in self.record.checkpoints if step is None or c.step == step]
        if not found:
            steps = self.steps
            if not steps:
                raise OperationalError(f"{self.store.url} has no checkpoint yet")
            has = f"{len(steps)} from {steps[0]} to {steps[-1]}"
            raise OperationalError(f"{self.store.url} has no checkpoint of step {step}: it has {has}")
        return found[-1]

    def at(self, index: int) -> RecordedCheckpoint:
        """Checkpoint ``index`` of the log. Raises ProtocolError: there is none."""
        count = len(self.record.checkpoints)
        if not 0 <= index < count:
            raise ProtocolError(f"the record has {count} checkpoints: there is no checkpoint {index}")
        return self.record.checkpoints[index]

    def document(self, checkpoint: RecordedCheckpoint) -> StoredCheckpoint:
        """The document of a checkpoint, with no tensor loaded."""
        from pol.training.storage import stored_checkpoint

        saved = stored_checkpoint.load_document(self.store, checkpoint.object)
        if (saved.step, saved.root) != (checkpoint.step, checkpoint.root):
            raise ProtocolError(
                f"the checkpoint of step {checkpoint.step} isn't the one in the log: that has root "
                f"{checkpoint.root.hex()}, the document is of root {saved.root.hex()} after {saved.step} steps"
            )
        counted = canonical_json.decode(saved.documents.get(PROGRESS, b"{}"), "document progress")
        if counted not in ({}, {"value": {"dict": [["steps", saved.step]]}}):
            raise ProtocolError(f"the checkpoint counts other steps than the {saved.step} of the log")
        return saved

    def changes(self, checkpoints: Iterable[RecordedCheckpoint]) -> Iterator[tuple[int, str]]:
        """Steps whose environment, data, or rate without a scheduler differ from those of the checkpoint before."""
        known: dict[str, str] = {}
        for checkpoint in checkpoints:
            documents = self.document(checkpoint).documents
            is_scheduled = any(name.startswith("scheduler") for name in documents)
            told = (_SETTING,) if is_scheduled else (_SETTING, _RATE)
            values = readable.flat(documents).items()
            now = {path: text for path, text in values if any(pattern.fullmatch(path) for pattern in told)}
            for path in sorted(known.keys() | now.keys() if known else ()):
                is_new = path not in known and path.startswith("cursor")  # the first batch of a loader
                if known.get(path) != now.get(path) and not is_new:
                    yield checkpoint.step, f"{path}: {known.get(path, 'nothing')} -> {now.get(path, 'nothing')}"
            known = now

    def names_task(self) -> bool:
        """Whether this is the record of a task's training, so that its steps can be replayed.

        Raises:
            ProtocolError: the first or the newest checkpoint isn't the one that the record names.
        """
        # Of two, as a newest one that leaves it out would be checked as the record of no task.
        ends = (self.checkpoint(), self.record.checkpoints[0])
        return any(COMPONENT in self.document(end).documents for end in ends)

    def verify(self, saved: StoredCheckpoint) -> None:
        """Hash every tensor of a checkpoint and compare it with its root; none stays in memory."""
        from pol.training.storage import checkpoint_tensors

        checkpoint_tensors.verify(self.store, saved)

    def tensors(self, saved: StoredCheckpoint) -> CheckpointTensors:
        """The tensors of a checkpoint, to be read one at a time."""
        from pol.training.storage.checkpoint_tensors import CheckpointTensors

        return CheckpointTensors(self.store, saved)


def split_step(text: str) -> tuple[str, int | None]:
    """``PATH@STEP`` as path and step; a path that exists is taken as it is."""
    match = re.fullmatch(r"(.+)@(\d{1,15})", text)
    if match is None or Path(text).exists():
        return text, None
    return match[1], int(match[2])


def is_run(path: str) -> bool:
    """Whether a path or URL names a learning record: a URL, a folder with one, or the file itself."""
    return "://" in path or Path(path).name == learning_record.HEAD or (Path(path) / learning_record.HEAD).is_file()


def open_store(path: str) -> Store:
    """The store at a path or URL; OperationalError if a path leads nowhere."""
    if "://" in path and not path.startswith("file://"):
        return Store(path)
    folder = Path(path.removeprefix("file://"))
    if folder.name == learning_record.HEAD and folder.is_file():
        folder = folder.parent
    if not folder.is_dir():
        raise OperationalError(f"there is no store {path}: name a folder, or a URL such as s3://bucket/runs")
    return Store(f"file://{folder.resolve()}")


def open_run(path: str) -> RecordedRun:
    """The newest record at a path or URL."""
    store = open_store(path)
    if not store.holds(learning_record.HEAD):
        raise OperationalError(f"{path} holds no learning record: nothing named {learning_record.HEAD}")
    return RecordedRun(store, learning_record.load_record(store))
