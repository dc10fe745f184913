"""Copies what the lineage of a training is checked with from the base's store into one's own."""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage import saved_state
from pol.training.storage.store import Store
from pol.training.task import checkpoint, initialization, learning_proof
from pol.training.task.initialization import Initialisation
from pol.training.task.task import DOCUMENT_LIMIT, GRAPH_LIMIT, PROGRAM_LIMIT, Task


def copy_record(source: Store, target: Store, record: LearningRecord, index: int) -> str:
    """Copy a record, the documents of its first checkpoint and of checkpoint ``index``, and what it stands on.

    The lineage of the record has been verified: so there is an end to it. The digest of the record.

    Raises:
        ProtocolError: a document isn't one.
        OperationalError: a store failed.
    """
    for place in {0, index}:
        _copy(source, target, record.checkpoints[place].object, saved_state.DOCUMENT_LIMIT)
    start = record.start
    if start["kind"] == "record":
        copy_record(source, target, learning_record.load(source, start["record"]), start["index"])
    elif start["kind"] == "initialisation":
        _copy(source, target, Initialisation.of_document(start["initialisation"]).program, initialization.PROGRAM_LIMIT)
    elif start["kind"] == "task":
        copy_task(source, target, start["task"])
    return target.put(record.encode())


def copy_task(source: Store, target: Store, digest: str) -> None:
    """Copy a task with all its parts, its data among them, and what it stands on.

    Raises:
        ProtocolError: a document isn't one.
        OperationalError: a store failed.
    """
    _copy_task(source, target, digest)


def _copy_task(source: Store, target: Store, digest: str) -> int:
    """As `copy_task`; the bytes that a file with a state of its program has at most."""
    task = Task.decode(source.get(digest, limit=DOCUMENT_LIMIT))
    program = StepProgram.from_bytes(source.get(task.program, limit=PROGRAM_LIMIT))
    names = ProgramNames.from_dict(canonical_json.decode(source.get(task.names, limit=GRAPH_LIMIT), "the names"))
    state = checkpoint.limit(names.slots, [slot.type for slot in program.slots])
    _copy(source, target, task.program, PROGRAM_LIMIT)
    _copy(source, target, task.names, GRAPH_LIMIT)
    _copy(source, target, task.aten, GRAPH_LIMIT)
    _copy(source, target, task.constants, checkpoint.limit(names.constants, program.constants))
    _copy(source, target, task.initial_state, state)
    if task.start.initialisation is not None:
        _copy(source, target, task.start.initialisation.program, initialization.PROGRAM_LIMIT)
    if task.start.proof is not None:
        proof = learning_proof.decode(source, task.start.proof)
        _copy(source, target, proof.checkpoints[-1].object, _copy_task(source, target, proof.task))
        _copy(source, target, task.start.proof, learning_proof.DOCUMENT_LIMIT)
    _copy(source, target, digest, DOCUMENT_LIMIT)
    return state


def _copy(source: Store, target: Store, digest: str, limit: int) -> None:
    if not target.exists(digest):
        target.put(source.get(digest, limit=limit))
