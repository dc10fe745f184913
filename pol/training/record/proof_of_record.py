"""The learning proof inside the learning record of a task's training (docs/spec/two_states.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from pol.commitments import canonical_json
from pol.commitments.array import array_root
from pol.errors import EvidenceError, Fault
from pol.training.record.recorded_run import RecordedRun
from pol.training.state import plain_data, readable
from pol.training.state.weight_entries import entry_of
from pol.training.state.words import of_words
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint
from pol.training.task.published_task import load
from pol.training.task.task_document import LoadedTask

COMPONENT = "task"
"""The document of a recorded checkpoint that lists the task's checkpoints so far."""
_HEX = re.compile(r"[0-9a-f]{64}")


def names_task(run: RecordedRun) -> bool:
    """Whether a record is of a task's training, so that its steps can be replayed.

    Raises:
        EvidenceError: the newest checkpoint isn't the one that the record names.
        OperationalError: the store failed.
    """
    return COMPONENT in run.document(run.checkpoint()).documents


def proof_of(run: RecordedRun) -> tuple[LoadedTask, LearningProof]:
    """The task of a record's training and its learning proof, both checked. No tensor of a checkpoint is loaded.

    Raises:
        EvidenceError: the record has no task, or its training isn't finished.
        OperationalError: the store failed.
    """
    documents = run.document(run.checkpoint()).documents
    if COMPONENT not in documents:
        problem = "the record names no task, so its steps can't be replayed: record with Recorder(..., task=)"
        raise EvidenceError(Fault.WRONG_TASK, problem)
    digest, listed = _listed(documents[COMPONENT])
    task = load(run.store, digest)
    checkpoints = task_checkpoints(listed, task.document.interval)
    said = readable.flat({"environment": documents["environment"]}) if "environment" in documents else {}
    environment = {path.removeprefix("environment/"): text.strip('"') for path, text in said.items()}
    return task, learning_proof.build(task, checkpoints, environment)


def require_recorded(run: RecordedRun, task: LoadedTask, proof: LearningProof, indices: Iterable[int]) -> None:
    """Check that a record and its proof have equal parameters and buffers in the checkpoints of these indices.

    Raises:
        EvidenceError: the record holds others, or has no checkpoint there.
        OperationalError: the store failed.
    """
    recorded = {checkpoint.step: checkpoint for checkpoint in run.record.checkpoints}
    for entry in (proof.checkpoints[index] for index in indices):
        if entry.step not in recorded:
            raise EvidenceError(Fault.MISSING_ENTRY, f"the record has no checkpoint of step {entry.step}")
        own = {e.name: e for e in run.document(recorded[entry.step]).entries}
        state = learning_proof.load_checkpoint(run.store, task, entry)
        for name, words in zip(task.names.slots, state, strict=True):
            found = entry_of(own, name)
            if found is None or found.type is None:
                continue  # state of the optimizer, whose arrays have other names
            if array_root(of_words(words, found.type.element)) != found.content:
                problem = f"{found.name} after {entry.step} steps isn't the one in the record's learning proof"
                raise EvidenceError(Fault.WRONG_ROOT, problem)


def task_checkpoints(listed: Sequence[Sequence[str]], interval: int) -> list[TaskCheckpoint]:
    """The task's checkpoints as a recorded checkpoint lists them: pairs of state root and digest, from step 0 on."""
    return [TaskCheckpoint(i, i * interval, bytes.fromhex(root), digest) for i, (root, digest) in enumerate(listed)]


def _listed(document: bytes) -> tuple[str, list[list[str]]]:
    fields = canonical_json.Fields(canonical_json.decode(document, "document task"), "document task", ["value"])
    value = plain_data.Decoder(_no_tensor).decode(fields.value("value"), "task")
    if (
        not isinstance(value, dict)
        or value.keys() != {"task", "checkpoints"}
        or not isinstance(value["checkpoints"], list)
    ):
        raise EvidenceError(Fault.MALFORMED, "document task doesn't list checkpoints of a task")
    if not all(_is_hex(part, 2) for part in value["checkpoints"]) or not _is_hex([value["task"]], 1):
        raise EvidenceError(Fault.MALFORMED, "document task names a checkpoint by something else than root and digest")
    return value["task"], value["checkpoints"]


def _is_hex(part: Any, count: int) -> bool:
    return isinstance(part, list) and len(part) == count and all(isinstance(p, str) and _HEX.fullmatch(p) for p in part)


def _no_tensor(tag: str, content: Any, path: str) -> NoReturn:
    raise EvidenceError(Fault.MALFORMED, f"{path} of document task is a {tag}: expected roots and digests")
