"""The learning proof inside the learning record of a task's training (docs/spec/two_states.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.errors import EvidenceError, Fault, UnsupportedError
from pol.graph.step_program import Component
from pol.training.record.recorded_run import COMPONENT, PROGRESS, RecordedRun
from pol.training.state import plain_data, readable
from pol.training.state.plain_data import WEIGHTS
from pol.training.state.words import of_words
from pol.training.storage.stored_checkpoint import StoredCheckpoint
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint
from pol.training.task.published_task import TaskLoader, load
from pol.training.task.task_document import LoadedTask

_HEX = re.compile(r"[0-9a-f]{64}")
NEEDED = frozenset((COMPONENT, PROGRESS, "parameters", "buffers", "model", "random", "cursor", "environment"))
"""Documents without which nobody resumes from a recorded checkpoint."""
_NONE: dict[str, Any] = {"names": ()}
_STEPS = re.compile(r"optimizer/state/state/[0-9]+/step")
"""Torch's count of an optimizer's steps; programs count their own."""


def proof_of(
    run: RecordedRun, *, is_finished: bool = True, load: TaskLoader = load
) -> tuple[LoadedTask, LearningProof]:
    """The task of a record's training and its learning proof, both checked. No tensor of a checkpoint is loaded."""
    documents = run.document(run.checkpoint()).documents
    if COMPONENT not in documents:
        problem = "the record names no task, so its steps can't be replayed: record with Recorder(..., task=)"
        raise EvidenceError(Fault.WRONG_TASK, problem)
    digest, listed = _listed(documents[COMPONENT])
    task = load(run.store, digest)
    if run.record.interval != task.document.interval:
        problem = f"the record says every {run.record.interval} steps, its task every {task.document.interval}"
        raise EvidenceError(Fault.WRONG_STEP, problem)
    checkpoints = task_checkpoints(listed, task.document.interval)
    said = readable.flat({"environment": documents["environment"]}) if "environment" in documents else {}
    environment = {path.removeprefix("environment/"): text.strip('"') for path, text in said.items()}
    if is_finished:
        return task, learning_proof.build(task, checkpoints, environment)
    proof = learning_proof.begun(task, checkpoints, environment)
    learning_proof.require_start_of(proof, task)
    return task, proof


def require_recorded(run: RecordedRun, task: LoadedTask, proof: LearningProof, indices: Iterable[int]) -> list[str]:
    """Check that the record's own checkpoints of these indices hold the states of the proof, and no other weights.

    Components of which they hold more than the task defines: nothing says whether that is right.
    """
    recorded = {checkpoint.step: checkpoint for checkpoint in run.record.checkpoints}
    rest: set[str] = set()
    for entry in (proof.checkpoints[index] for index in indices):
        if entry.step not in recorded:
            raise EvidenceError(Fault.MISSING_ENTRY, f"the record has no checkpoint of step {entry.step}")
        saved = run.document(recorded[entry.step])
        listed = [[past.state_root.hex(), past.object] for past in proof.checkpoints[: entry.index + 1]]
        if _listed(saved.documents.get(COMPONENT, b"{}")) != (task.digest, listed):
            problem = f"the record's own checkpoint after {entry.step} steps lists other states of its task"
            raise EvidenceError(Fault.BROKEN_LOG, problem)
        rest.update(_beside(saved, task, learning_proof.load_checkpoint(run.store, task, entry)))
    return sorted(rest)


def _beside(saved: StoredCheckpoint, task: LoadedTask, state: Sequence[Words]) -> Iterator[str]:
    """Compare a recorded checkpoint with the task's state after as many steps; the components that hold more."""
    after = f"after {saved.step} steps"
    held = _documents(saved)
    if missing := NEEDED - held.keys():
        raise EvidenceError(Fault.MISSING_ENTRY, f"the record's own checkpoint {after} has no {min(missing)}")
    try:
        names = slot_entries(task, [name for group in held.get("optimizer", _NONE)["names"] for name in group])
    except (UnsupportedError, TypeError, KeyError) as error:
        raise EvidenceError(Fault.MISSING_ENTRY, f"the record's own checkpoint {after}: {error}") from error
    own = {entry.name: entry for entry in saved.entries}
    for place, (name, words) in enumerate(zip(names, state, strict=True)):
        found, slot = own.pop(name, None), task.aten.slots[place]
        # An optimizer makes its state of a parameter with the first gradient.
        is_late = found is None and slot.component is Component.OPTIMIZER
        if is_late and np.array_equal(words, task.initial_state[place]):
            continue
        if found is None:
            raise EvidenceError(Fault.MISSING_ENTRY, f"the record's own checkpoint {after} has no tensor {name}")
        if array_root(of_words(words, _element(slot.type.dtype))) != found.content:
            problem = f"{name} {after} isn't the one in the record's learning proof"
            raise EvidenceError(Fault.WRONG_ROOT, problem)
    for name, entry in own.items():
        if name.startswith(WEIGHTS):
            problem = f"the record's own checkpoint {after} holds {name}, which the task doesn't have"
            raise EvidenceError(Fault.WRONG_TASK, problem)
        if _STEPS.fullmatch(name) and entry.content not in _counts(saved.step):
            raise EvidenceError(Fault.WRONG_STEP, f"{name} {after} counts other steps")
        if name not in (COMPONENT, PROGRESS, "parameters", "buffers"):
            yield name.partition("/")[0]


def _documents(saved: StoredCheckpoint) -> dict[str, Any]:
    """The documents of a checkpoint without values of torch and NumPy; every tensor is named once, in its place."""
    named: set[str] = set()

    def special(tag: str, content: Any, path: str) -> None:
        if tag in ("Tensor", "Array"):
            named.add(plain_data.placed(content, path, saved.types.keys()))

    found = {}
    for name, document in saved.documents.items():
        fields = canonical_json.Fields(canonical_json.decode(document, name), f"document {name}", ["value"])
        found[name] = plain_data.Decoder(special).decode(fields.value("value"), plain_data.segment(name))
    if unnamed := saved.types.keys() - named:
        raise EvidenceError(Fault.MALFORMED, f"no document mentions the tensor {min(unnamed)!r}")
    return found


def _element(dtype: str) -> ElementType:
    """The element type of a torch dtype: float32 is F32, bfloat16 BF16, int64 I64, uint8 U8, bool BOOL."""
    return ElementType[dtype.replace("float", "f").replace("int", "i").replace("ui", "u").upper()]


def _counts(steps: int) -> list[bytes]:
    """The roots that a count of steps may have, as a tensor without dimensions."""
    forms = {ElementType.F32: "<f4", ElementType.F64: "<f8", ElementType.I64: "<i8", ElementType.I32: "<i4"}
    data = {element: np.array([steps], form).view(np.uint8) for element, form in forms.items()}
    return [array_root(Array(ArrayType(element, ()), words)) for element, words in data.items()]


def slot_entries(task: LoadedTask, updated: Sequence[str]) -> list[str]:
    """The array of a complete state that holds each slot; ``updated`` are the optimizer's parameters in its order.

    Raises:
        UnsupportedError: the optimizer doesn't update a parameter that the task's does.
    """
    numbers = {name: number for number, name in enumerate(updated)}
    found = []
    for slot, name in zip(task.program.slots, task.names.slots, strict=True):
        parameter, _, key = name.rpartition(":")
        if slot.component is not Component.OPTIMIZER:
            kind = "parameters" if slot.component is Component.PARAMETER else "buffers"
            found.append(f"{kind}/{plain_data.segment(name)}")
        elif parameter in numbers:
            found.append(f"optimizer/state/state/{numbers[parameter]}/{plain_data.segment(key)}")
        else:
            raise UnsupportedError(f"the optimizer doesn't update {parameter}, which the task's optimizer does")
    return found


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
