"""Files of several processes: read together, or refused with what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pol.commitments.array import Array, ArrayType, ElementType
from pol.commitments.complete_state import CompleteState
from pol.errors import OperationalError, ProtocolError
from pol.training.storage import sharded_files
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint
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


def stored(folder: Path) -> tuple[Store, StoredCheckpoint]:
    store = Store(f"file://{folder}")
    for pieces in FILES:
        if pieces:
            sharded_files.write(store, STATE.root, pieces)
    data = sharded_files.describe(STATE.root, [list(pieces) for pieces in FILES])
    return store, StoredCheckpoint(3, tuple(STATE.entries), STATE.documents, data)


def test_what_several_stored_is_read_as_one(tmp_path: Path) -> None:
    store, saved = stored(tmp_path)
    found = load_state(store, StoredCheckpoint.decode(saved.encode()))
    assert found.root == STATE.root
    assert all(np.array_equal(found.arrays[name].data, WHOLE[name].data) for name in WHOLE)


def changed(name: str, change: Callable[[list[Any]], Any]) -> pytest.param:
    return pytest.param(change, name, id=name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        changed("hold 24 of the 60 bytes of a/w", lambda files: files[1]["pieces"].pop(0)),
        changed("gap or overlap at byte 36 of a/w", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 3, 2])),
        changed("gap or overlap at byte 12 of a/w", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 1, 4])),
        changed("has no rows 2 . 4", lambda files: files[1]["pieces"].__setitem__(0, ["a/w", 2, 4])),
        changed("isn't in the checkpoint", lambda files: files[1]["pieces"].append(["a/other"])),
        changed("holds an array twice", lambda files: files[1]["pieces"].append(["a/w"])),
        changed("piece of a file is", lambda files: files[1]["pieces"].append(["a/w", -1, 2])),
        changed("piece of a file is", lambda files: files[1]["pieces"].append("a/w")),
        changed("bytes, not", lambda files: files.__setitem__(slice(2), [
            {**files[0], "name": files[1]["name"]}, {**files[1], "name": files[0]["name"]}])),
        changed("has no member|members", lambda files: files[0].pop("name")),
    ],
)  # fmt: skip
def test_documents_that_lie_are_refused(tmp_path: Path, change: Callable[[list[Any]], Any], message: str) -> None:
    store, saved = stored(tmp_path)
    change(saved.data["files"])
    with pytest.raises(ProtocolError, match=message):
        load_state(store, saved)


def test_a_file_with_another_content_is_refused(tmp_path: Path) -> None:
    store, saved = stored(tmp_path)
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
