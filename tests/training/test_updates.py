"""Checkpoints as updates of earlier ones: lossless, bounded, and refused if anything is off.

Files of several processes: read together, or refused with what is wrong.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zstandard
from torch import nn

from pol import Recorder
from pol.commitments.array import Array, ArrayType, ElementType
from pol.commitments.complete_state import CompleteState
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage import checkpoint_tensors, sharded_files, stored_checkpoint, updates
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint, UpdateBase
from stored_state import load_state

pytestmark = pytest.mark.rules


def array(*shape: int) -> Array:
    type_ = ArrayType(ElementType.F32, shape)
    return Array(type_, np.random.default_rng(7).integers(0, 200, type_.nbytes, np.uint8))


WHOLE = {"a/w": array(5, 3), "a/s": array(), "a/e": array(0, 4), "a/one": array(1, 2)}
STATE = CompleteState(WHOLE, {"a": b'{"value":null}'})


def rows(name: str, first: int, count: int) -> tuple[Rows, Array]:
    whole, piece = WHOLE[name], Rows(name, first, count)
    type_, begin = piece.type_in(whole.type), piece.first_byte(whole.type)
    return piece, Array(type_, whole.data[begin : begin + type_.nbytes])


FILES = [dict([rows("a/w", 0, 2), (Rows("a/s"), WHOLE["a/s"])]), dict([rows("a/w", 2, 3), rows("a/one", 0, 1)]), {}]


def sharded(folder: Path) -> tuple[Store, StoredCheckpoint]:
    store = Store(f"file://{folder}")
    for pieces in FILES:
        if pieces:
            sharded_files.write(store, STATE.root, pieces)
    data = sharded_files.describe(STATE.root, [list(pieces) for pieces in FILES])
    return store, StoredCheckpoint(3, tuple(STATE.entries), STATE.documents, data)


def test_what_several_stored_is_read_as_one(tmp_path: Path) -> None:
    store, saved = sharded(tmp_path)
    found = load_state(store, StoredCheckpoint.decode(saved.encode()))
    assert found.root == STATE.root
    assert all(np.array_equal(found.arrays[name].data, WHOLE[name].data) for name in WHOLE)


def replaced(name: str, change: Callable[[list[Any]], Any]) -> pytest.param:
    return pytest.param(change, name, id=name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        replaced("hold 24 of the 60 bytes of a/w", lambda files: files[1]["pieces"].pop(0)),
        replaced("gap or overlap at byte 36 of a/w", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 3, 2])),
        replaced("gap or overlap at byte 12 of a/w", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 1, 4])),
        replaced("has no rows 2 . 4", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 2, 4])),
        replaced("isn't in the checkpoint", lambda files: files[1]["pieces"].append(["a/other"])),
        replaced("holds an array twice", lambda files: files[1]["pieces"].append(["a/w"])),
        replaced("piece of a file is", lambda files: files[1]["pieces"].append(["a/w", -1, 2])),
        replaced("piece of a file is", lambda files: files[1]["pieces"].append("a/w")),
        replaced("bytes, not", lambda files: files.__setitem__(slice(2), [
            {**files[0], "name": files[1]["name"]}, {**files[1], "name": files[0]["name"]}])),
        replaced("has no member|members", lambda files: files[0].pop("name")),
    ],
)  # fmt: skip
def test_documents_that_lie_are_refused(tmp_path: Path, change: Callable[[list[Any]], Any], message: str) -> None:
    store, saved = sharded(tmp_path)
    change(saved.data["files"])
    with pytest.raises(ProtocolError, match=message):
        load_state(store, saved)


def test_a_file_with_another_content_is_refused(tmp_path: Path) -> None:
    store, saved = sharded(tmp_path)
    for path in tmp_path.rglob("*.safetensors"):
        honest = path.read_bytes()
        data = bytearray(honest)
        data[-1] ^= 1
        path.write_bytes(data)
        with pytest.raises(ProtocolError, match="isn't the one that the checkpoint commits to"):
            load_state(store, saved)
        path.write_bytes(data[:-1])
        with pytest.raises(ProtocolError, match="bytes, not"):
            load_state(store, saved)
        path.unlink()
        with pytest.raises(OperationalError):
            load_state(store, saved)
        path.write_bytes(honest)
    assert load_state(store, saved).root == STATE.root


def test_equal_runs_are_read_one_by_one(tmp_path: Path) -> None:
    """Two processes with 3 and 2 of 5 rows; another cut, another number of processes: no equal runs."""
    files = [dict([rows("a/w", 0, 3), rows("a/one", 0, 1), (Rows("a/s"), WHOLE["a/s"])]), dict([rows("a/w", 3, 2)])]
    store, types = Store(f"file://{tmp_path}"), {name: whole.type for name, whole in WHOLE.items()}
    for pieces in files:
        sharded_files.write(store, STATE.root, pieces)
    data = sharded_files.describe(STATE.root, [list(pieces) for pieces in files])
    assert sharded_files.are_equal_runs(types, data, 2)
    assert not sharded_files.are_equal_runs(types, data, 3)
    assert not sharded_files.are_equal_runs({"a/w": types["a/w"]}, data, 2)
    other = sharded_files.describe(STATE.root, [list(pieces) for pieces in FILES[:2]])
    assert not sharded_files.are_equal_runs(types, other, 2)
    first, second = (sharded_files.read_run(store, types, data, number) for number in range(2))
    assert (first["a/w"].type.shape, second["a/w"].type.shape) == ((3, 3), (2, 3))
    assert np.array_equal(np.concatenate([first["a/w"].data, second["a/w"].data]), WHOLE["a/w"].data)
    assert (first["a/one"].type.shape, second["a/one"].type.shape) == ((1, 2), (0, 2))
    assert np.array_equal(second["a/s"].data, WHOLE["a/s"].data)
    assert second["a/e"].type.shape == (0, 4)


SHAPES = {"scalar": (), "empty": (0, 3), "long": (updates.PIECE // 2 + 5,), "matrix": (7, 5)}


def draw(generator: np.random.Generator, near: dict[str, Array] | None = None) -> dict[str, Array]:
    """Arrays of every element type; with ``near``, its own with a few bytes changed."""
    arrays = {}
    for element in ElementType:
        for kind, shape in SHAPES.items():
            if kind == "long" and element not in (ElementType.F32, ElementType.U8):
                continue
            name, type_ = f"{element.name}/{kind}", ArrayType(element, shape)
            high = 2 if element is ElementType.BOOL else 256
            if near is None:
                data = generator.integers(0, high, type_.nbytes, dtype=np.uint8)
            else:
                data = near[name].data.copy()
                if data.size and element.value % 3:
                    data[:: generator.integers(1, 9)] = 1
            arrays[name] = Array(type_, data)
    return arrays


def encoded(
    arrays: dict[str, Array], base: dict[str, Array], names: list[str]
) -> tuple[list[updates.UpdatePart], bytes]:
    parts, data = zip(*updates.encode(arrays, base, names), strict=True)
    return list(parts), b"".join(data)


def as_bytes(arrays: dict[str, Array]) -> dict[str, tuple[ArrayType, bytes]]:
    return {name: (array.type, array.data.tobytes()) for name, array in arrays.items()}


def test_every_element_type_survives() -> None:
    generator = np.random.default_rng(0)
    base = draw(generator)
    arrays = draw(generator, base)
    arrays["new"] = Array(ArrayType(ElementType.F32, (500,)), np.zeros(2000, np.uint8))
    arrays["I64/matrix"] = Array(ArrayType(ElementType.F64, (7, 5)), base["I64/matrix"].data)
    parts, data = encoded(arrays, base, sorted(arrays))
    types = {name: array.type for name, array in arrays.items()}
    found = {}
    for name, (first, part) in updates.offsets(parts, types).items():
        found[name] = updates.decode(data[first : first + part.size], part, types[name], base.get(name))
    assert as_bytes(found) == as_bytes(arrays)
    assert {part.coding for part in parts} == {updates.RAW, updates.XOR}
    assert len(data) <= sum(type_.nbytes for type_ in types.values())


def state(value: float, documents: dict[str, bytes] | None = None) -> CompleteState:
    array = np.full(1000, value, np.float32).view(np.uint8)
    still = np.arange(100, dtype=np.uint8)
    return CompleteState(
        {
            "weights": Array(ArrayType(ElementType.F32, (1000,)), array),
            "still": Array(ArrayType(ElementType.U8, (100,)), still),
        },
        documents or {"other": b"{}"},
    )


def chain(store: Store, length: int) -> list[tuple[str, StoredCheckpoint]]:
    """A full checkpoint and updates of it."""
    saved, base = [], None
    for step in range(length):
        now = state(1 + step / 100)
        digest, document = stored_checkpoint.save(store, step, now, base)
        base = UpdateBase(digest, now)
        saved.append((digest, document))
    return saved


def test_what_did_not_change_takes_no_bytes(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    _, (digest, saved) = chain(store, 2)
    assert [part["name"] for part in saved.data["arrays"]] == ["weights"]
    assert saved.data["arrays"][0]["bytes"] < 100
    loaded = load_state(store, stored_checkpoint.load_document(store, digest))
    assert loaded.root == state(1.01).root == saved.root


@pytest.mark.parametrize("updated", [False, True])
def test_a_file_that_holds_no_byte_has_to_be_there_too(tmp_path: Path, updated: bool) -> None:
    store = Store(f"file://{tmp_path}")
    empty = CompleteState({"none": Array(ArrayType(ElementType.F32, (0,)), np.empty(0, np.uint8))}, {"other": b"{}"})
    digest, saved = stored_checkpoint.save(store, 0, empty)
    if updated:
        _, saved = stored_checkpoint.save(store, 1, empty, UpdateBase(digest, empty))
    (file,) = stored_checkpoint.sizes(saved)
    checkpoint_tensors.verify(store, saved)
    (tmp_path / file[:2] / file).unlink()
    with pytest.raises(OperationalError, match=file):
        checkpoint_tensors.verify(store, saved)


def train(store: str, steps: int, updated: bool, background: bool = True) -> LearningRecord:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Linear(30, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoints = Checkpoints(background=background, updates=updated, full_every=4)
    recorder = Recorder(store, model, optimizer, every=1, checkpoints=checkpoints)
    recorder.resume()
    while recorder.steps < steps:
        optimizer.zero_grad()
        model(torch.randn(8, 20)).square().mean().backward()
        optimizer.step()
        recorder.step()
    return recorder.close()


@pytest.mark.parametrize("background", [False, True])
def test_a_recorded_training(tmp_path: Path, background: bool) -> None:
    """The roots are those of full checkpoints; every fourth one is full; a run that was cut goes on."""
    full = train(f"file://{tmp_path}/full", 11, False)
    train(f"file://{tmp_path}/updated", 6, True, background)
    record = train(f"file://{tmp_path}/updated", 11, True, background)
    assert [c.root for c in record.checkpoints] == [c.root for c in full.checkpoints]
    store = Store(f"file://{tmp_path}/updated")
    forms = []
    for checkpoint in record.checkpoints:
        saved = stored_checkpoint.load_document(store, checkpoint.object)
        forms.append(saved.data["form"])
        assert load_state(store, saved).root == checkpoint.root
    update = [stored_checkpoint.UPDATES] * 3
    assert forms == [
        stored_checkpoint.FULL, *update, stored_checkpoint.FULL, *update[1:], stored_checkpoint.FULL, *update,
        stored_checkpoint.FULL,
    ]  # fmt: skip
    assert learning_record.load_record(store) == record


def changed(saved: StoredCheckpoint, **members: object) -> StoredCheckpoint:
    return StoredCheckpoint(saved.step, saved.entries, saved.documents, {**saved.data, **members})


def stored(store: Store, saved: StoredCheckpoint) -> StoredCheckpoint:
    return stored_checkpoint.load_document(store, store.put(saved.encode()))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """Frames that say or hold more than the document says; the reader decompresses no further."""
    store = Store(f"file://{tmp_path}")
    _, (_, saved) = chain(store, 2)
    zeros = bytes(1 << 26)
    for bomb in (
        zstandard.ZstdCompressor().compress(zeros),
        zstandard.ZstdCompressor(write_content_size=False).compress(zeros),
        lying_frame(zeros, 4000),
        zstandard.ZstdCompressor().compress(zeros[:3999]),
        b"",
        b"no frame",
    ):
        part = {"name": "weights", "coding": "xor", "bytes": len(bomb)}
        with pytest.raises(ProtocolError, match="weights"):
            load_state(store, stored(store, changed(saved, object=store.put(bomb), arrays=[part])))


def lying_frame(data: bytes, size: int) -> bytes:
    """A frame of ``data`` that states another size: a header with a 4-byte size field is rewritten."""
    frame = bytearray(zstandard.ZstdCompressor().compress(data))
    assert frame[4] >> 6 == 2, "the size field has four bytes"
    at = 5 if frame[4] & 0x20 else 6
    assert int.from_bytes(frame[at : at + 4], "little") == len(data)
    frame[at : at + 4] = size.to_bytes(4, "little")
    return bytes(frame)


def test_what_an_update_may_not_say(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    (first, _), (second, saved) = chain(store, 2)
    part = saved.data["arrays"][0]
    later = StoredCheckpoint(5, saved.entries, saved.documents, saved.data)
    cases: dict[str, dict[str, object]] = {
        "unknown form": {"form": "patches"},
        "members": {"more": 1},
        "64 lower-case": {"base": "../../etc/passwd"},
        "unknown coding": {"arrays": [{**part, "coding": "pickle"}]},
        "expected an integer": {"arrays": [{**part, "bytes": -1}]},
        "twice": {"arrays": [part, part]},
        "no such tensor": {"arrays": [{**part, "name": "stranger"}]},
        "lacks it": {"arrays": [], "object": store.put(b"")},
        "at most": {"arrays": [{**part, "bytes": part["bytes"] - 1}]},
        "ends before": {"arrays": [{**part, "bytes": part["bytes"] + 1}]},
        "update holds": {"arrays": [{**part, "coding": "raw"}]},
        "of one of step": {"base": store.put(later.encode())},
    }
    for message, members in cases.items():
        with pytest.raises(ProtocolError, match=message):
            load_state(store, stored(store, changed(saved, **members)))
    wrong = {"weights": Array(ArrayType(ElementType.F32, (1000,)), np.zeros(4000, np.uint8))}
    parts, data = encoded(wrong, {}, ["weights"])
    members = {"object": store.put(data), "arrays": [part.to_json() for part in parts]}
    with pytest.raises(ProtocolError, match=r"tensor weights in .* isn't the one"):
        load_state(store, stored(store, changed(saved, **members)))
    assert json.loads(store.get(second))["data"]["base"] == first


def test_a_long_chain_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"memory://{tmp_path}")
    saved = chain(store, 6)
    monkeypatch.setattr(stored_checkpoint, "MAX_UPDATES", 4)
    assert load_state(store, saved[4][1]).root == saved[4][1].root
    with pytest.raises(ProtocolError, match="more than 4 updates"):
        load_state(store, saved[5][1])
