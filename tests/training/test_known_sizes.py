"""No store makes us take a longer file than it is known or said to be; URLs that stand on others are refused.

Of stores that aren't HTTP what comes is counted, whatever size was stated.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from small_record import KEY, train

from digits_training import honest, loaded, published
from loopback_server import Quiet, serving
from pol.commitments.keccak import keccak256
from pol.errors import EvidenceError, OperationalError, ProtocolError
from pol.training.record import attestation, learning_record
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.http_files import HttpPatience
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


DATA = bytes(range(256)) * 20000
DIGEST = keccak256(DATA).hex()
MOST = 1 << 27
"""Bytes after which the server gives up on a reader that takes all of them."""


class Bucket(Quiet):
    """An S3 endpoint that states a length of 10 and sends what its manner is."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        if self.command == "HEAD":
            self.begin(10)
        elif "list-type" in self.path:
            self.reply(404)
        elif self.server.manner == "drip":
            self.begin(10)
            self.server.over.wait(30)
        else:
            self.begin(MOST)
            self.close_connection = True
            while self.server.sent < MOST and not self.server.over.is_set():
                self.wfile.write(bytes(1 << 16))
                self.server.sent += 1 << 16

    def begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 08:00:00 GMT")
        self.end_headers()


@pytest.fixture
def server() -> Iterator[Any]:
    with serving(Bucket, manner="endless", sent=0) as found:
        yield found


def bucket(server: Any) -> Store:
    options = {
        "endpoint_url": server.url,
        "key": "x",
        "secret": "x",
        "client_kwargs": {"region_name": "us-east-1"},
        "skip_instance_cache": True,
    }
    return Store("s3://bucket/run", options, HttpPatience(answer=1.0, idle=0.5))


def test_an_object_of_s3_longer_than_stated(server: Any) -> None:
    with pytest.raises(CorruptObjectError, match="more than the 1000 bytes"):
        bucket(server).get(DIGEST, limit=1000)
    with pytest.raises(ProtocolError, match="more than the 1000 bytes"):
        bucket(server).read("record.json", limit=1000)
    assert server.sent < MOST // 4


def test_an_object_of_s3_that_never_comes(server: Any) -> None:
    server.manner = "drip"
    with pytest.raises(OperationalError, match="in time"):
        bucket(server).get(DIGEST, limit=1000)


@pytest.mark.parametrize("url", ["file://{}", "memory://{}"])
def test_a_file_longer_than_stated(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may come between the size and the bytes; so does a record that grows, which is read whole."""
    store = Store(url.format(tmp_path / "store"))
    store.put(DATA)
    store.replace("record.json", DATA)
    monkeypatch.setattr(store._files, "size", lambda path: 10)
    with pytest.raises(CorruptObjectError, match="more than the 1000 bytes"):
        store.get(DIGEST, limit=1000)
    with pytest.raises(ProtocolError, match="more than the 1000 bytes"):
        store.read("record.json", limit=1000)
    assert store.get(DIGEST) == store.read("record.json", limit=len(DATA)) == DATA


def test_an_object_that_is_too_long_is_written_anew(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    store.put(DATA)
    path = tmp_path / DIGEST[:2] / DIGEST
    path.write_bytes(DATA + b"x")
    store.put(DATA)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("simplecache::http://127.0.0.1:9/run", {}),
        ("filecache::s3://bucket/run", {}),
        ("zip://inside::http://127.0.0.1:9/run.zip", {}),
        ("simplecache://127.0.0.1:9/run", {"target_protocol": "http"}),
        ("zip://inside", {"fo": "http://127.0.0.1:9/run.zip"}),
        ("reference://run", {"remote_options": {}}),
        ("generic://http://127.0.0.1:9/run", {}),
        ("dir://run", {"target_protocol": "http", "path": "http://127.0.0.1:9"}),
    ],
)
def test_a_filesystem_on_another_is_refused(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(OperationalError, match=r"one filesystem on another.*name the inner URL"):
        Store(url, options)
