"""Documents and files of strangers, mutated by the thousand: two kinds of errors, and no other state than the root's.

Two attackers. One changes bytes in a store. The other writes documents of his own and gives each its right digest; then
only the roots are left to notice it.
"""

import copy
import io
import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import rfc8785
import zstandard
from failing_stores import UploadFileSystem, train
from fsspec import register_implementation
from test_updates import lying_frame

from pol.commitments import canonical_json
from pol.commitments.array import ArrayType, ElementType
from pol.commitments.complete_state import CompleteState, StateEntry, complete_root, document_root
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.state import components
from pol.training.storage import safetensors_format, stored_checkpoint, updates
from pol.training.storage.checkpoint_tensors import CheckpointTensors
from pol.training.storage.commitment import array_entry
from pol.training.storage.store import OpenFile, Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint
from stored_state import load_state

Files = dict[str, bytes]


class PlainFileSystem(UploadFileSystem):
    """Files in a dictionary."""

    protocol = "pol-plain"
    files: ClassVar[Files] = {}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.files[path]), "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        return path in self.files

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        return self.files[path][start:end]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if path not in self.files:
            raise FileNotFoundError(path)
        return io.BytesIO(self.files[path])


register_implementation("pol-plain", PlainFileSystem)


@pytest.fixture(scope="module")
def honest() -> Files:
    """The files of a record of four checkpoints, in full and as updates."""
    store = Store("memory://fuzz")
    train(store, 6, checkpoints=Checkpoints(background=False, updates=True, full_every=2))
    files = {path.removeprefix("/fuzz/"): store._files.cat_file(path) for path in store._files.find("/fuzz")}
    assert {len(name.partition(".")[0]) for name in files} == {6, 67}
    return files


def open_files(files: Files) -> Store:
    PlainFileSystem.files = {f"pol-plain-root/{name}": data for name, data in files.items()}
    return Store("pol-plain://pol-plain-root")


def read_everything(store: Store, record: LearningRecord) -> int:
    """Load all checkpoints of a record; what loads has the root that the record says. The number that did."""
    loaded = 0
    for checkpoint in record.checkpoints:
        try:
            saved = stored_checkpoint.load_document(store, checkpoint.object)
            if saved.root != checkpoint.root:
                continue
            state = load_state(store, saved)
        except (ProtocolError, OperationalError):
            continue
        assert CompleteState(state.arrays, state.documents).root == checkpoint.root
        loaded += 1
    return loaded


def mutate_bytes(draw: random.Random, data: bytes, others: list[bytes]) -> bytes:
    at, length = draw.randrange(len(data) + 1), draw.choice([1, 2, 8, 64, 1000])
    kind = draw.randrange(8)
    if kind == 0:
        return data[:at]
    if kind == 1:
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    if kind == 2:
        return data[:at] + draw.randbytes(length) + data[at:]
    if kind == 3:
        return data[:at] + data[at + length :]
    if kind == 4:
        return data[:at] + data[at : at + length] + data[at:]
    if kind == 5:
        return data[at:] + data[:at]
    if kind == 6:
        return data + draw.choice([b"\0", b" ", b"\n", data])
    return draw.choice(others)


def test_bytes_changed_in_a_store(honest: Files) -> None:
    """Flipped, cut, moved, doubled, swapped between names: noticed, or nothing that is read has changed."""
    draw = random.Random(1)
    names, contents = sorted(honest), [honest[name] for name in sorted(honest)]
    record = LearningRecord.decode(honest["record.json"])
    unharmed = read_everything(open_files(honest), record)
    assert unharmed == len(record.checkpoints) == 4
    noticed = 0
    for _ in range(250):
        name = draw.choice(names)
        data = mutate_bytes(draw, honest[name], contents)
        store = open_files({**honest, name: data})
        try:
            found = learning_record.load_record(store)
        except (ProtocolError, OperationalError):
            noticed += 1
            continue
        loaded = read_everything(store, found)
        noticed += loaded < unharmed or data == honest[name] or name == "record.json"
        if data != honest[name] and len(name) > 67:
            assert loaded < unharmed, f"{name} was changed and nobody noticed"
    assert noticed > 150


STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 255, 1 << 31, 1 << 32, (1 << 53) - 1, -(1 << 53) + 1, 0.5, 1e300, "", "x",
    "a/b", "..", "../../etc/passwd", "/etc/passwd", "0" * 64, "f" * 64, "g" * 64, "F32", "BOOL", "\u0000",
    "\ud7ff", "e\u0301", "x" * 5000, "nan", "inf", "0x1.8p+1", "1" * 5000, [], {}, [[]], [1, 2],
    {"int": "9007199254740993"}, {"int": "1"}, {"float": "nan"}, {"float": "1"}, {"bytes": "0"},
    {"bytes": "00"}, {"tuple": []}, {"set": [[], []]}, {"set": [{"dict": []}]}, {"dict": [[{"dict": []}, 1]]},
    {"dict": [[1, 2], [1, 3]]}, {"counter": 1}, {"Tensor": "nobody"}, {"Tensor": "parameters/weight"},
    {"Array": "parameters/weight"}, {"Scalar": ["BF16", "0000"]}, {"Scalar": ["F32", "00"]},
    {"Dtype": "float32"}, {"Dtype": "__class__"}, {"Device": "cuda:-1"}, {"Device": "cpu:x"},
    {"Device": "cuda:99999999999"}, {"Size": [-1]}, {"Size": [1 << 52]}, {"form": "full"},
]  # fmt: skip


def mutate_json(draw: random.Random, document: Any) -> Any:
    """One place of a document changed: replaced, removed, doubled, renamed, moved, nested."""
    root = [copy.deepcopy(document)]
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting:
        holder = waiting.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    holder, key = draw.choice(places)
    other, theirs = draw.choice(places)
    kind = draw.randrange(8)
    value = holder[key]
    if kind <= 2:
        holder[key] = draw.choice(STRANGE)
    elif kind == 3 and holder is not root:
        del holder[key]
    elif kind == 4:
        holder[key] = copy.deepcopy(other[theirs])
    elif kind == 5 and isinstance(holder, dict):
        holder[draw.choice(["kind", "x", "", "data", "int", "Tensor", str(key) + "x"])] = holder.pop(key)
    elif kind == 6 and isinstance(value, list):
        value.insert(draw.randrange(len(value) + 1), draw.choice([*value, 0]))
        draw.shuffle(value)
    elif kind == 7:
        for _ in range(draw.choice([1, 20, 70])):
            holder[key] = draw.choice([[holder[key]], {"tuple": [holder[key]]}])
    elif isinstance(value, int) and not isinstance(value, bool):
        holder[key] = value + draw.choice([-1, 1, 1 << 30])
    return root[0]


def documents(honest: Files, kind: str) -> list[Any]:
    found = [json.loads(data) for data in honest.values() if data.startswith(b'{"')]
    return [document for document in found if document.get("kind") == kind]


def reencode(document: Any) -> bytes | None:
    try:
        return rfc8785.dumps(document)
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


def restated(document: Any) -> Any:
    """The document with the root that its entries have, as an attacker would state it; as it is, if they have none."""
    try:
        entries = [array_entry(item) for item in document["arrays"]]
        entries += [
            StateEntry(name, None, document_root(canonical_json.encode(value)))
            for name, value in document["documents"].items()
        ]
        entries.sort(key=lambda entry: entry.name.encode())
        return {**document, "root": complete_root(entries).hex()}
    except (ProtocolError, KeyError, TypeError, AttributeError, ValueError):
        return document


def test_documents_of_an_attacker(honest: Files) -> None:
    """Checkpoint documents with any member changed and every digest and root made right again."""
    draw = random.Random(2)
    originals = documents(honest, "pol/checkpoint")
    opened = refused = 0
    for _ in range(500):
        document = mutate_json(draw, draw.choice(originals))
        if draw.random() < 0.7 and isinstance(document, dict):
            document = restated(document)
        data = reencode(document)
        if data is None:
            continue
        digest = keccak256(data).hex()
        store = open_files({**honest, f"{digest[:2]}/{digest}": data})
        try:
            saved = stored_checkpoint.load_document(store, digest)
            state = load_state(store, saved)
            assert CompleteState(state.arrays, state.documents).root == saved.root
            components.decode(state)
            opened += 1
        except (ProtocolError, OperationalError):
            refused += 1
    assert refused > 250
    assert opened > 5


def test_plain_data_of_an_attacker(honest: Files) -> None:
    """Components with any form in any place, beside the tensors that they were recorded with."""
    draw = random.Random(3)
    store = open_files(honest)
    record = learning_record.load_record(store)
    state = load_state(store, stored_checkpoint.load_document(store, record.checkpoints[-1].object))
    opened = refused = 0
    for _ in range(1000):
        name = draw.choice(sorted(state.documents))
        data = reencode(mutate_json(draw, json.loads(state.documents[name])))
        if data is None:
            continue
        changed = CompleteState(state.arrays, {**state.documents, name: data})
        try:
            found = components.decode(changed)
            opened += 1
        except ProtocolError:
            refused += 1
            continue
        # What was understood says the same when it is said again: no two documents of one meaning.
        assert found.keys() == state.documents.keys()
    assert refused > 500
    assert opened > 50


def test_records_of_an_attacker(honest: Files) -> None:
    draw = random.Random(4)
    original = json.loads(honest["record.json"])
    refused = 0
    for _ in range(1000):
        data = reencode(mutate_json(draw, original))
        if data is None:
            continue
        try:
            record = LearningRecord.decode(data)
        except ProtocolError:
            refused += 1
            continue
        assert record.encode() == data
    assert refused > 500


def test_documents_that_are_no_json() -> None:
    """What the canonical form rules out: NaN, numbers past 2^53, repeated members, other spellings, depth."""
    hostile: list[bytes] = [
        b'{"a":NaN}', b'{"a":Infinity}', b'{"a":9007199254740993}', b'{"a":1e400}', b'{"a":1.0}', b'{"a":-0}',
        b'{"a":1,"a":1}', b'{"b":1,"a":1}', b'{ "a":1}', b'{"a":"\\u0061"}', b'{"a":"\\ud800"}', b"\xff\xfe{}",
        b"\xef\xbb\xbf{}", b"[]", b"null", b"", b"{", b'{"a":"\x00"}', b"[" * 100_000, b'{"a":' * 100_000,
        b'{"a":' + b"1" * 5000 + b"}", b'{"a":"' + b"\xed\xa0\x80" + b'"}', b'{"a":"\xff"}',
    ]  # fmt: skip
    for data in hostile:
        readers: list[Callable[[bytes], object]] = [StoredCheckpoint.decode, LearningRecord.decode]
        for read in readers:
            with pytest.raises(ProtocolError):
                read(data)
        for name in ("component", "a/b"):
            with pytest.raises(ProtocolError):
                components.decode(CompleteState({}, {name: data}))


def test_tensor_files_of_an_attacker(honest: Files) -> None:
    """A file with any byte changed before the data, or any length: refused by its header; the data by its roots."""
    draw = random.Random(5)
    saved = StoredCheckpoint.decode(
        next(d for d in honest.values() if d.startswith(b'{"arrays"') and b'"form":"full"' in d)
    )
    data = honest[f"{saved.root.hex()[:2]}/{saved.root.hex()}.safetensors"]
    head = len(safetensors_format.header(saved.types))
    for _ in range(500):
        changed = mutate_bytes(draw, data, [honest["record.json"]])
        try:
            file = safetensors_format.KnownFile(
                OpenFile(io.BytesIO(changed), len(changed), "read the file"), saved.types, "the file"
            )
            arrays = {name: file.array(name) for name in saved.types}
        except ProtocolError:
            continue
        assert changed[:head] == data[:head]
        assert len(changed) == len(data)
        assert (
            b"".join(arrays[name].data.tobytes() for name in safetensors_format.by_size(saved.types)) == changed[head:]
        )


def test_update_objects_of_an_attacker(honest: Files) -> None:
    """An update's bytes changed, with the digest in the document made right: only the roots are left to notice it."""
    draw = random.Random(6)
    store = open_files(honest)
    original = next(d for d in documents(honest, "pol/checkpoint") if d["data"]["form"] == "updates")
    content = store.get(original["data"]["object"])
    bounds = np.cumsum([0, *(part["bytes"] for part in original["data"]["arrays"])])
    for _ in range(400):
        number = draw.randrange(len(bounds) - 1)
        before, part, after = np.split(np.frombuffer(content, np.uint8), [bounds[number], bounds[number + 1]])
        changed = mutate_bytes(draw, part.tobytes(), [content, b""])
        data = before.tobytes() + changed + after.tobytes()
        digest = keccak256(data).hex()
        document = copy.deepcopy(original)
        document["data"]["object"] = digest
        document["data"]["arrays"][number]["bytes"] = len(changed)
        store = open_files({**honest, f"{digest[:2]}/{digest}": data})
        try:
            state = load_state(store, StoredCheckpoint.decode(rfc8785.dumps(document)))
        except ProtocolError:
            continue
        # A frame may be written in several ways; what it says is the same.
        assert CompleteState(state.arrays, state.documents).root.hex() == original["root"]


@pytest.mark.parametrize("form", ["full", "updates"])
def test_memory_that_a_document_asks_for(honest: Files, form: str) -> None:
    """A terabyte stated in a document of a few bytes takes no memory: what is stored is looked at first."""
    original = next(d for d in documents(honest, "pol/checkpoint") if d["data"]["form"] == form)
    arrays = copy.deepcopy(original["arrays"])
    name = original["data"]["arrays"][0]["name"] if form == "updates" else arrays[0]["name"]
    next(array for array in arrays if array["name"] == name).update(dtype="U8", shape=[1 << 20, 1 << 20])
    document = restated({**original, "arrays": arrays})
    data = rfc8785.dumps(document)
    digest = keccak256(data).hex()
    file = f"{document['root'][:2]}/{document['root']}.safetensors"
    store = open_files({**honest, f"{digest[:2]}/{digest}": data, file: b"small"})
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            load_state(store, stored_checkpoint.load_document(store, digest))
        with (
            pytest.raises(ProtocolError),
            CheckpointTensors(store, stored_checkpoint.load_document(store, digest)) as tensors,
        ):
            print(tensors[name])
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_memory_of_a_bomb(tmp_path: Any) -> None:
    """A frame that goes on for a gigabyte after what it stated: decompressed no further than the document says."""
    frame = lying_frame(np.zeros(1 << 26, np.uint8).tobytes(), 4000)
    types = {"x": ArrayType(ElementType.U8, (4000,))}
    for bomb in (frame, frame + frame, zstandard.ZstdCompressor().compress(bytes(4000)) + frame):
        tracemalloc.start()
        try:
            part = updates.UpdatePart("x", updates.XOR, len(bomb))
            try:
                found = updates.decode(bomb, part, types["x"], None).data
                assert found.size == 4000
            except ProtocolError:
                pass
            assert tracemalloc.get_traced_memory()[1] < 1 << 24
        finally:
            tracemalloc.stop()
