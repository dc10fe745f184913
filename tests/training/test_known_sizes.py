"""Where the size of a file is known, no store makes us take a longer one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import rfc8785
from small_record import KEY, train

from digits_training import honest, loaded, published
from pol.errors import EvidenceError, ProtocolError
from pol.training.record import attestation, learning_record
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import CorruptObjectError, OpenFile, Store
from pol.training.task import learning_proof, task_tensors
from pol.training.task import published_task as tasks
from pol.training.task.task_recorder import TaskRecorder
from stored_state import load_state


def test_the_limit_is_near_what_a_checkpoint_has() -> None:
    task = loaded()
    for names, types, words in (
        (task.names.slots, task.slot_types, task.initial_state),
        (task.names.constants, task.program.constants, task.constants),
        (['"\u00e4\n' * 100 + str(i) for i in range(len(task.slot_types))], task.slot_types, task.initial_state),
    ):
        size = len(task_tensors.encode(names, types, words))
        assert 2 * size <= task_tensors.limit(names, types) < 2 * size + 2 * task_tensors.SPARE


def at_the_limit(store: Store, past: int) -> dict[str, str]:
    """Objects of the task's files of tensors, so much longer than what is read."""
    task = loaded()
    limits = {
        "constants": task_tensors.limit(task.names.constants, task.program.constants),
        "initial_state": task_tensors.limit(task.names.slots, task.slot_types),
    }
    return {name: store.put(bytes(limit + past)) for name, limit in limits.items()}


@pytest.mark.parametrize("member", ["constants", "initial_state"])
def test_parts_of_a_task(member: str) -> None:
    store, digest = published()
    document = json.loads(store.get(digest))
    long = store.put(rfc8785.dumps(document | {member: at_the_limit(store, 1)[member]}))
    with pytest.raises(CorruptObjectError, match="bytes expected at most"):
        tasks.load(store, long)
    judged = store.put(rfc8785.dumps(document | {member: at_the_limit(store, 0)[member]}))
    with pytest.raises(EvidenceError, match="not a safetensors file"):
        tasks.load(store, judged)


def test_a_checkpoint_of_a_proof() -> None:
    training = honest()
    entry = training.proof.checkpoints[1]
    long = replace(entry, object=at_the_limit(training.store, 1)["initial_state"])
    with pytest.raises(CorruptObjectError, match="bytes expected at most"):
        learning_proof.load_checkpoint(training.store, training.task, long)


def test_what_a_solver_has_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    recorder = TaskRecorder(store, loaded())
    recorder(0, loaded().initial_state)
    recorder.keep("training.json")
    assert TaskRecorder(store, loaded()).resume("training.json") is not None
    monkeypatch.setattr(learning_proof, "DOCUMENT_LIMIT", 100)
    with pytest.raises(ProtocolError, match="more than the 100 bytes"):
        TaskRecorder(store, loaded()).resume("training.json")


def test_the_record_that_a_recorder_goes_on_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store, limits = Store(f"file://{tmp_path}"), []
    read = Store.read

    def note(self: Store, name: str, *, limit: int = 1 << 34) -> bytes:
        limits.append(limit)
        return read(self, name, limit=limit)

    monkeypatch.setattr(Store, "read", note)
    train(store, 4)
    assert set(limits) == {learning_record.DOCUMENT_LIMIT}


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("change", [b"x", b""])
def test_a_file_that_is_attested(tmp_path: Path, updates: bool, change: bytes) -> None:
    """It has the bytes that its checkpoint gives, no more and no fewer."""
    store = Store(f"file://{tmp_path}")
    record = train(store, 3, updates=updates)
    saved = stored_checkpoint.load_document(store, record.checkpoints[1].object)
    for name, size in stored_checkpoint.sizes(saved).items():
        (path,) = tmp_path.glob(f"*/{name}")
        data = path.read_bytes()
        assert len(data) == size
        path.write_bytes(data + change if change else data[:-1])
        with pytest.raises(CorruptObjectError, match=f"isn't the {size} bytes"):
            attestation.attest(store, record, KEY)
        path.write_bytes(data)
    attestation.attest(store, record, KEY)


def test_no_more_is_hashed_than_the_checkpoint_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server states the right size and sends without an end, or another size and anything."""
    store = Store(f"file://{tmp_path}")
    record = train(store, 3)
    read, taken = OpenFile.read, [0]

    def endless(self: OpenFile, size: int = -1, /) -> bytes:
        taken[0] += size
        assert taken[0] < 1 << 24
        return bytes(size)

    monkeypatch.setattr(OpenFile, "read", endless)
    with pytest.raises(CorruptObjectError, match="fetch another copy"):
        attestation.attest(store, record, KEY)
    monkeypatch.setattr(OpenFile, "read", read)
    monkeypatch.setattr(Store, "_size", lambda self, path: 1 << 50)
    name = record.checkpoints[0].object
    with pytest.raises(CorruptObjectError, match=f"the store says {1 << 50}"):
        attestation._sha256(store, name, 7)


def test_sizes_of_the_files_of_several_processes(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    record = train(store, 1)
    state = load_state(store, stored_checkpoint.load_document(store, record.checkpoints[0].object))
    whole = [Rows(name) for name in state.arrays]
    pieces = [whole[:2], whole[2:]]
    for held in pieces:
        sharded_files.write(store, state.root, {rows: state.arrays[rows.array] for rows in held})
    types = {name: array.type for name, array in state.arrays.items()}
    found = sharded_files.sizes(types, sharded_files.describe(state.root, pieces))
    assert len(found) == 2
    for name, size in found.items():
        (path,) = tmp_path.glob(f"*/{name}")
        assert path.stat().st_size == size
    with pytest.raises(ProtocolError, match="isn't in the checkpoint"):
        sharded_files.sizes({}, sharded_files.describe(state.root, pieces))
