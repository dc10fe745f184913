"""Does an auditor notice every change of a record? Each entry of its checkpoints is changed, one thing at a time."""

import dataclasses
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from lab.benchmarks.figure import Figure
from pol import Recorder, exact
from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, ElementType
from pol.commitments.complete_state import CompleteState
from pol.errors import OperationalError, ProtocolError
from pol.graph.capture import capture
from pol.training.record import learning_record, proof_of_record
from pol.training.record.learning_record import LearningRecord, RecordedCheckpoint, load_record
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage import checkpoint_tensors, stored_checkpoint
from pol.training.storage.store import Store
from pol.training.task import published_task
from pol.verification.runs.record_check import CheckOutcome, check_record

STEPS, INTERVAL = 6, 2
Change = Callable[[CompleteState], CompleteState]


def recorded(store: Store, *, is_exact: bool = False) -> None:
    """The record of a task with moments and running statistics, trained by torch or by `pol.exact`."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, order = torch.randn(40, 6), torch.randint(0, 40, (STEPS, 8))
    y = (x.sum(1) > 0).long()
    step = capture(model, nn.functional.cross_entropy, optimizer, (x, y), order, check=False)
    digest, _ = published_task.publish(store, step, steps=STEPS, interval=INTERVAL)
    task = published_task.load(store, digest)
    exact_step = exact(model, nn.functional.cross_entropy, optimizer, steps=STEPS, check=False)
    recorder = Recorder(store, model, optimizer, task=task, parts={"exact": exact_step} if is_exact else {})
    recorder.resume()
    for rows in order:
        if is_exact:
            exact_step(x[rows], y[rows])
            recorder.step()
            continue
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
        recorder.step()
    recorder.close()


def accepted_by(where: str, forged: RecordedRun, step: int) -> set[str]:
    """The verbs that take a record with a change at a place for good without saying that they don't look there.

    ``step`` is the changed checkpoint's: each verb looks there first, and at the whole record if that seems good.
    """
    learning_record.publish(forged.store, forged.record)
    unseen, component = _uncompared(forged, step), where.partition(":")[0].partition("/")[0]
    if unseen is not None and component in unseen:
        return set()
    is_fine = (step not in forged.steps or _is_fine(forged.store, step)) and _is_fine(forged.store)
    return {name for name, is_taken in (("verify", unseen is not None), ("check", is_fine)) if is_taken}


def _is_fine(store: Store, step: int | None = None) -> bool:
    return {found.outcome for found in check_record(store, step=step)} <= {CheckOutcome.GOOD, CheckOutcome.SKIPPED}


def _uncompared(run: RecordedRun, step: int) -> list[str] | None:
    """The components that an auditor lists as unchecked if it accepts a record; the proof's states are as they were."""
    try:
        task, proof = proof_of_record.proof_of(run)
        proof_of_record.require_recorded(run, task, proof, [step // INTERVAL])
        return proof_of_record.require_recorded(run, task, proof, range(len(proof.checkpoints)))
    except (ProtocolError, OperationalError):
        return None  # bad evidence, or an object that isn't there


def changes(run: RecordedRun, step: int, chosen: Container[str] | None = None) -> Iterator[tuple[str, RecordedRun]]:
    """The record with one thing changed in its checkpoint of ``step`` or in its entry of it, and the place of that.

    ``chosen`` are the places that are wanted, if not all.
    """
    record, own = run.record, run.checkpoint(step)
    place, saved = record.checkpoints.index(own), run.document(own)
    with checkpoint_tensors.open_state(run.store, saved) as state:
        arrays = {name: Array(array.type, array.data.copy()) for name, array in state.arrays.items()}
    kept = CompleteState(arrays, saved.documents)
    for where, change in (*_of_arrays(kept), *_of_documents(kept)):
        if chosen is not None and where not in chosen:
            continue
        digest, saved = stored_checkpoint.save(run.store, step, change(kept))
        yield where, RecordedRun(run.store, _with(record, place, RecordedCheckpoint(step, saved.root, digest)))
    other = record.checkpoints[place - 1]
    for where, entry in (
        ("record: step", dataclasses.replace(own, step=own.step + 1)),
        ("record: root", dataclasses.replace(own, root=bytes(32))),
        ("record: object", dataclasses.replace(own, object=other.object)),
    ):
        yield where, RecordedRun(run.store, _with(record, place, entry))
    yield "record: interval", RecordedRun(run.store, dataclasses.replace(record, interval=record.interval + 1))
    if own is record.checkpoints[-1]:
        return  # without it, it is the record of the steps before
    fewer = (*record.checkpoints[:place], *record.checkpoints[place + 1 :])
    yield "record: absence", RecordedRun(run.store, dataclasses.replace(record, checkpoints=fewer))


def _with(record: LearningRecord, place: int, entry: RecordedCheckpoint) -> LearningRecord:
    entries = (*record.checkpoints[:place], entry, *record.checkpoints[place + 1 :])
    return dataclasses.replace(record, checkpoints=entries)


def _of_arrays(state: CompleteState) -> Iterator[tuple[str, Change]]:
    """Value, shape, type, absence, surplus, and the same under another name, with and without its document."""
    for name, array in state.arrays.items():
        type_ = array.type
        flipped = array.data.copy()
        flipped[-1] ^= 1
        other = ElementType.I32 if type_.element is ElementType.F32 else ElementType.U8
        flat = ArrayType(other, (array.data.size // (4 if other is ElementType.I32 else 1),))
        for what, found in (
            ("value", {name: Array(type_, flipped)}),
            ("shape", {name: Array(ArrayType(type_.element, (*type_.shape, 1)), array.data)}),
            ("type", {name: Array(flat, array.data)}),
            ("absence", {}),
            ("surplus", {name: array, f"{name}.more": array}),
            ("name", {f"{name}.more": array}),
        ):
            rest = {own: kept for own, kept in state.arrays.items() if own != name}
            yield f"{name}: {what}", _arrays({**rest, **found})


def _arrays(arrays: Mapping[str, Array]) -> Change:
    return lambda state: CompleteState(dict(sorted(arrays.items())), state.documents)


def _whole(arrays: Mapping[str, Array], documents: Mapping[str, bytes]) -> Change:
    return lambda state: CompleteState(dict(sorted(arrays.items())), dict(documents))


def _of_documents(state: CompleteState) -> Iterator[tuple[str, Change]]:
    """Absence, and each value in it; a swap of two tensors among them."""
    for name, document in state.documents.items():
        yield f"{name}: absence", _documents({k: v for k, v in state.documents.items() if k != name})
        form = canonical_json.decode(document, name)
        for where, changed in _changed(form, name):
            yield where, _documents({**state.documents, name: canonical_json.encode(changed)})
    weights = [name for name in state.arrays if name.startswith("parameters/")]
    noise = {name: Array(state.arrays[name].type, state.arrays[name].data[::-1].copy()) for name in weights}
    moved = {name.replace("/", "/net."): array for name, array in noise.items()}
    named = {name.partition("/")[2]: {"Tensor": name} for name in moved}
    for where, arrays, names in (("all renamed", moved, named), ("all left out", {}, {})):
        form = {"value": {"dict": [[name, tensor] for name, tensor in sorted(names.items())]}}
        documents = {**state.documents, "parameters": canonical_json.encode(form)}
        rest = {name: array for name, array in state.arrays.items() if name not in weights}
        yield f"parameters: {where}", _whole({**rest, **arrays}, documents)
    yield "surplus: document", _documents({**state.documents, "surplus": canonical_json.encode({"value": 1})})


def _documents(documents: Mapping[str, bytes]) -> Change:
    return lambda state: CompleteState(state.arrays, dict(documents))


def _changed(form: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The form with one of its values changed, for each of them."""
    if isinstance(form, dict):
        for key, item in form.items():
            yield from ((path, {**form, key: new}) for path, new in _changed(item, f"{where}/{key}"))
    elif isinstance(form, list):
        for i, item in enumerate(form):
            yield from ((path, [*form[:i], new, *form[i + 1 :]]) for path, new in _changed(item, f"{where}/{i}"))
        if form:
            yield f"{where}/absence", form[1:]
    elif isinstance(form, str):
        yield where, form[:-1] + chr(ord(form[-1]) ^ 1) if form else "more"
    elif isinstance(form, bool):
        yield where, not form
    elif isinstance(form, int):
        yield where, form + 1
    else:
        yield where, 1


def missed(steps: Iterable[int]) -> tuple[int, list[str]]:
    """How many changes of the checkpoints of these steps are made, and those that a verb misses."""
    made, found = 0, []
    # No change is one of the task, whose objects are named by their digests: it is loaded and lowered once.
    once = cache(published_task.load)
    folder = tempfile.TemporaryDirectory()  # a store in memory looks through all of its objects for each
    with folder, patch.object(published_task, "load", once), patch.object(proof_of_record, "load", once):
        store = Store(f"file://{folder.name}")
        recorded(store)
        run = RecordedRun(store, load_record(store))
        for step in steps:
            for where, forged in changes(run, step):
                made += 1
                found += [f"step {step}, {where}: {verb}" for verb in accepted_by(where, forged, step)]
    return made, found


def record_mutation_figures() -> dict[str, Figure]:
    """Changes of a record that an auditor misses, without those of parts that every report lists as unchecked."""
    made, found = missed(range(0, STEPS + 1, INTERVAL))
    return {"record_mutations": Figure(made, "changes"), "record_mutations_missed": Figure(len(found), "changes")}
