"""The newest checkpoint of a learning record, loaded and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.state import components
from pol.training.storage.checkpoint_tensors import open_state
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint


@dataclass(frozen=True)
class NewestCheckpoint:
    """The record, and the components of its newest checkpoint, tensors on the processor."""

    record: LearningRecord
    step: int
    components: Mapping[str, Any]


def load_newest_checkpoint(
    store: Store, read: Callable[[Store, StoredCheckpoint], AbstractContextManager[CompleteState]] = open_state
) -> NewestCheckpoint | None:
    """The newest checkpoint in a store; None if no record has been published.

    ``read`` opens the state of a checkpoint.

    Raises:
        ProtocolError: the checkpoint isn't the one in the record.
    """
    if not store.holds(learning_record.HEAD):
        return None
    run = RecordedRun(store, learning_record.load_record(store))
    saved = run.document(run.checkpoint())
    with read(store, saved) as state:
        return NewestCheckpoint(run.record, saved.step, components.decode(state))


def components_of(store: Store, trainer: str) -> Mapping[str, Any] | None:
    """The components of the newest checkpoint; None if there is none. ``trainer`` names the one of its own trainer.

    Raises:
        ProtocolError: the record of another kind of training, or as `load`.
    """
    found = load_newest_checkpoint(store)
    if found is not None and trainer not in found.components:
        raise ProtocolError(f"{store.url} holds the record of another kind of training: give another store")
    return None if found is None else found.components
