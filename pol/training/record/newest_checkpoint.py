"""The newest checkpoint of a learning record, read back and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.state import components
from pol.training.storage import saved_state
from pol.training.storage.saved_state import SavedState
from pol.training.storage.store import Store


@dataclass(frozen=True)
class Newest:
    """The record, and the components of its newest checkpoint, tensors on the processor."""

    record: LearningRecord
    step: int
    components: Mapping[str, Any]


def load(store: Store, read: Callable[[Store, SavedState], CompleteState] = saved_state.load) -> Newest | None:
    """The newest checkpoint that the store's training has published; None if it has published nothing.

    ``read`` gets the state of a checkpoint.

    Raises:
        ProtocolError: a checkpoint isn't what the record says.
        OperationalError: the store failed.
    """
    if not store.holds(learning_record.HEAD):
        return None
    record = learning_record.load(store)
    newest = record.checkpoints[-1]
    saved = saved_state.load_document(store, newest.object)
    if (saved.step, saved.root) != (newest.step, newest.root):
        raise ProtocolError(f"the checkpoint of step {newest.step} isn't the one in the log")
    return Newest(record, newest.step, components.decode(read(store, saved)))
