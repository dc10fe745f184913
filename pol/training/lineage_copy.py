"""Copies what the lineage of a training is checked with from the base's store into one's own."""

from __future__ import annotations

from pol.training import learning_proof
from pol.training.initialisation import Initialisation
from pol.training.records import record as learning_record
from pol.training.records.record import LearningRecord
from pol.training.storage.store import Store
from pol.training.task import Task


def copy_record(source: Store, target: Store, record: LearningRecord, index: int) -> str:
    """Copy a record, the documents of its first checkpoint and of checkpoint ``index``, and what it stands on.

    The lineage of the record has been verified: so there is an end to it. The digest of the record.

    Raises:
        ProtocolError: a document isn't one.
        OperationalError: a store failed.
    """
    for place in {0, index}:
        _copy(source, target, record.checkpoints[place].object)
    start = record.start
    if start["kind"] == "record":
        copy_record(source, target, learning_record.load(source, start["record"]), start["index"])
    elif start["kind"] == "initialisation":
        _copy(source, target, Initialisation.of_document(start["initialisation"]).program)
    elif start["kind"] == "task":
        copy_task(source, target, start["task"])
    return target.put(record.encode())


def copy_task(source: Store, target: Store, digest: str) -> None:
    """Copy a task with all its parts, its data among them, and what it stands on.

    Raises:
        ProtocolError: a document isn't one.
        OperationalError: a store failed.
    """
    task = Task.decode(source.get(digest))
    for part in (task.program, task.names, task.aten, task.constants, task.initial_state):
        _copy(source, target, part)
    if task.start.initialisation is not None:
        _copy(source, target, task.start.initialisation.program)
    if task.start.proof is not None:
        proof = learning_proof.decode(source, task.start.proof)
        copy_task(source, target, proof.task)
        _copy(source, target, proof.checkpoints[-1].object)
        _copy(source, target, task.start.proof)
    _copy(source, target, digest)


def _copy(source: Store, target: Store, digest: str) -> None:
    if not target.exists(digest):
        target.put(source.get(digest))
