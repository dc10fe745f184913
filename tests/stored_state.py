"""A whole stored state in memory, which no part of pol needs."""

from pol.commitments.complete_state import CompleteState
from pol.training.storage.checkpoint_tensors import open_state
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint


def load_state(store: Store, saved: StoredCheckpoint) -> CompleteState:
    """The state of a checkpoint, every tensor hashed and compared."""
    with open_state(store, saved) as state:
        return CompleteState(dict(state.arrays), saved.documents)
