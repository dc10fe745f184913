"""A learning record in a store, written without torch: a bot operator has none."""

import dataclasses

import numpy as np

from pol.commitments.array import Array, ArrayType, ElementType
from pol.commitments.complete_state import CompleteState
from pol.training.record import learning_record
from pol.training.record.learning_record import GIVEN, LearningRecord, RecordedCheckpoint
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store


def state_of(step: int, salt: int = 0) -> CompleteState:
    """Arrays and documents of no leaf, of one and of several."""
    random = np.random.default_rng(1000 * salt + step)

    def array(element: ElementType, *shape: int) -> Array:
        type_ = ArrayType(element, shape)
        return Array(type_, random.integers(0, 256, type_.nbytes, np.uint8))

    arrays = {
        "m/weight": array(ElementType.F32, 40, 5),
        "m/bias": array(ElementType.BF16, 300),
        "m/none": array(ElementType.I64, 3, 0),
        "b": array(ElementType.U8),
    }
    documents = {"m": b'{"value":"' + b"x" * 700 + b'"}', "e": b'{"step":%d}' % step}
    return CompleteState(arrays, documents)


def write_record(store: Store, size: int, salt: int = 0) -> LearningRecord:
    """A record of so many checkpoints, published; equal numbers give the beginning of the same record."""
    record = LearningRecord(b"\x07" * 32, GIVEN, 10, ())
    if store.holds(learning_record.HEAD):
        record = learning_record.load(store)
    for i in range(len(record.checkpoints), size):
        digest, saved = stored_checkpoint.save(store, 10 * i, state_of(i, salt))
        added = RecordedCheckpoint(10 * i, saved.root, digest)
        record = dataclasses.replace(record, checkpoints=(*record.checkpoints, added))
    learning_record.publish(store, record)
    return record
