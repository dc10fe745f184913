"""Objects are named by their bytes, appear whole or not at all, and are checked when read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import CorruptObjectError, Store

pytestmark = pytest.mark.rules

DATA = b"some bytes"
DIGEST = "0" * 64


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/objects" if request.param == "file" else f"memory://{tmp_path}")


def test_round_trip(store: Store) -> None:
    digest = store.put(DATA)
    assert digest == store.put(DATA)
    assert store.exists(digest)
    assert store.get(digest) == DATA
    assert store.get(store.put(b"")) == b""


def test_pieces_are_the_object(store: Store) -> None:
    pieces = [b"some ", b"", bytearray(b"by"), memoryview(b"tes")]
    assert store.put_pieces(iter(pieces)) == store.put(DATA)
    digest = store.put_pieces(iter([b"another"]))
    assert b"".join(store.pieces(digest)) == store.get(digest) == b"another"
    assert store.get(store.put_pieces([])) == b""
    store.require(digest, limit=7)
    with pytest.raises(CorruptObjectError, match="more than the 6 bytes"):
        store.require(digest, limit=6)


def test_pieces_that_fail_leave_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield DATA
        raise OSError("the source is gone")

    store = Store(f"file://{tmp_path}")
    with pytest.raises(OperationalError, match="the source is gone"):
        store.put_pieces(pieces())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_copy_is_checked_before_it_is_there(tmp_path: Path) -> None:
    source, target = (Store(f"file://{tmp_path}/{name}") for name in ("source", "target"))
    digest = source.put(DATA)
    file = tmp_path / "source" / digest[:2] / digest
    file.write_bytes(b"SOME BYTES")
    for use in (lambda: list(source.pieces(digest)), lambda: target.copy(source, digest)):
        with pytest.raises(CorruptObjectError, match="corrupt"):
            use()
    assert not target.exists(digest)
    file.write_bytes(DATA)
    target.copy(source, digest)
    assert target.get(digest) == DATA


def test_the_name_is_the_keccak_of_the_bytes(store: Store) -> None:
    assert store.put(b"") == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_a_missing_object_is_operational(store: Store) -> None:
    assert not store.exists(DIGEST)
    with pytest.raises(OperationalError, match=DIGEST):
        store.get(DIGEST)


@pytest.mark.parametrize("name", ["", "ab", "../" * 20 + "etc/passwd", "A" * 64, "g" * 64, "0" * 65, "0" * 64 + "\n"])
def test_a_name_that_is_no_digest(store: Store, name: str) -> None:
    for use in (store.get, store.exists):
        with pytest.raises(ProtocolError, match="isn't a digest"):
            use(name)


def test_changed_bytes_are_noticed_and_repaired(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    digest = store.put(DATA)
    file = tmp_path / digest[:2] / digest
    for changed in (DATA[:-1], b"SOME BYTES", b""):
        file.write_bytes(changed)
        with pytest.raises(CorruptObjectError, match="corrupt"):
            store.get(digest)
    store.put(DATA)
    assert store.get(digest) == DATA


def test_an_object_longer_than_expected_is_not_read(store: Store) -> None:
    digest = store.put(DATA)
    assert store.get(digest, limit=len(DATA)) == DATA
    with pytest.raises(ProtocolError, match="at most"):
        store.get(digest, limit=len(DATA) - 1)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"file://{tmp_path}")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.put(DATA)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    assert store.get(store.put(DATA)) == DATA


def test_a_full_disk_is_operational(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"file://{tmp_path}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OperationalError, match="No space left"):
        store.put(DATA)


def test_an_unknown_kind_of_store() -> None:
    with pytest.raises(OperationalError, match="can't open"):
        Store("nosuch://x")


def test_readers_never_see_half_an_object(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def pieces() -> Iterator[bytes]:
        for piece in (b"first", b"second"):
            yield piece
            seen.append([p.name for p in tmp_path.rglob("*") if p.is_file() and not p.name.startswith(".")])

    Store(f"file://{tmp_path}").put_file(f"{DIGEST}.bin", pieces())
    assert seen == [[], []]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [f"{DIGEST}.bin"]
