"""One leaf of a recorded checkpoint with its proof: what answers a demand (docs/spec/learning_log.md)."""

from __future__ import annotations

from pol.commitments.complete_state import ChunkProof
from pol.errors import ProtocolError
from pol.training import saved_state
from pol.training.record import LearningRecord
from pol.training.store import Store


def prove_recorded(store: Store, record: LearningRecord, index: int, position: int, leaf: int) -> ChunkProof:
    """The proof of a leaf of checkpoint ``index``; position and leaf count on from 0 past the last one.

    The whole checkpoint is read and hashed, so that nothing wrong is shown to a chain.

    Raises:
        ProtocolError: no such checkpoint, or it isn't what the record says.
        OperationalError: the store failed.
    """
    if not 0 <= index < len(record.checkpoints):
        raise ProtocolError(f"the record has {len(record.checkpoints)} checkpoints: there is no checkpoint {index}")
    saved = saved_state.load_document(store, record.checkpoints[index].object)
    if saved.root != record.checkpoints[index].root:
        raise ProtocolError(f"the checkpoint of step {saved.step} isn't the one in the log")
    return saved_state.load(store, saved).prove(position, leaf)
