"""Copies the documents of a lineage from the base's store into the run's own."""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.graph.node_names import Names
from pol.graph.step_program import StepProgram
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store
from pol.training.task import initialization, learning_proof, task_tensors
from pol.training.task.initialization import Initialization
from pol.training.task.published_task import GRAPH_LIMIT, PROGRAM_LIMIT
from pol.training.task.task_document import DOCUMENT_LIMIT, Task


def copy_record(source: Store, target: Store, record: LearningRecord, index: int) -> str:
    """Copy a record, the documents of checkpoints 0 and ``index``, and its bases; the digest of the record.

    The lineage of the record has been verified, so it has an end.

    Raises:
        ProtocolError: an object isn't the document that it should be.
        OperationalError: a store failed.
    """
    for place in {0, index}:
        _copy(source, target, record.checkpoints[place].object, stored_checkpoint.DOCUMENT_LIMIT)
    start = record.start
    if start["kind"] == "record":
        copy_record(source, target, learning_record.load(source, start["record"]), start["index"])
    elif start["kind"] == "initialisation":
        _copy(source, target, Initialization.of_document(start["initialisation"]).program, initialization.PROGRAM_LIMIT)
    elif start["kind"] == "task":
        copy_task(source, target, start["task"])
    return target.put(record.encode())


def copy_task(source: Store, target: Store, digest: str) -> int:
    """Copy a task with all its parts, data included, and its bases; the limit for a file with a state of its program.

    Raises:
        ProtocolError: an object isn't the document that it should be.
        OperationalError: a store failed.
    """
    task = Task.decode(source.get(digest, limit=DOCUMENT_LIMIT))
    program = StepProgram.from_bytes(source.get(task.program, limit=PROGRAM_LIMIT))
    names = Names.from_dict(canonical_json.decode(source.get(task.names, limit=GRAPH_LIMIT), "the names"))
    state = task_tensors.limit(names.slots, [slot.type for slot in program.slots])
    _copy(source, target, task.program, PROGRAM_LIMIT)
    _copy(source, target, task.names, GRAPH_LIMIT)
    _copy(source, target, task.aten, GRAPH_LIMIT)
    _copy(source, target, task.constants, task_tensors.limit(names.constants, program.constants))
    _copy(source, target, task.initial_state, state)
    if task.start.initialization is not None:
        _copy(source, target, task.start.initialization.program, initialization.PROGRAM_LIMIT)
    if task.start.proof is not None:
        proof = learning_proof.decode(source, task.start.proof)
        _copy(source, target, proof.checkpoints[-1].object, copy_task(source, target, proof.task))
        _copy(source, target, task.start.proof, learning_proof.DOCUMENT_LIMIT)
    _copy(source, target, digest, DOCUMENT_LIMIT)
    return state


def _copy(source: Store, target: Store, digest: str, limit: int) -> None:
    if not target.exists(digest):
        target.put(source.get(digest, limit=limit))
