"""Evidence on a disk that is full: told, about the task that it concerns, and never lost for another one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pol.errors import OperationalError
from pol.roles.party import kept_store
from pol.roles.party.kept_store import KeptStore
from pol.training.storage.party_database import PartyDatabase

pytestmark = pytest.mark.rules

SMALL, LARGE = b"a state of the honest task", bytes(2000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def store(source: Path, tmp_path: Path) -> KeptStore:
    return KeptStore(f"file://{source}", PartyDatabase(tmp_path / "own"))


def limited(store: KeptStore) -> Callable[[bytes], str]:
    """The disk has room for what is small alone."""
    put = store._own.put

    def small(data: bytes) -> str:
        if len(data) > 1000:
            raise OperationalError("No space left on device")
        return put(data)

    return small


def test_what_cannot_be_kept_of_a_task_is_no_other_tasks_trouble(
    store: KeptStore, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = store.put(SMALL), store.put(LARGE)
    with monkeypatch.context() as full:
        full.setattr(store._own, "put", limited(store))
        with store.about("hostile"):
            store.get(large)
            with pytest.raises(OperationalError, match=r"No space left.*nothing new is staked: make room there"):
                store.require_kept()
        with store.about("honest"):
            store.get(small)
            store.require_kept()
            assert not store.unkept()
    # Its owner takes it away: it is in memory yet.
    shutil.rmtree(source)
    with store.about("hostile"):
        store.require_kept()
        assert store.get(large) == LARGE
    assert not store._held


@pytest.mark.parametrize("vanished", [False, True])
def test_who_sits_goes_on_and_is_told(
    store: KeptStore, source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, vanished: bool
) -> None:
    large = store.put(LARGE)
    monkeypatch.setattr(store._own, "put", limited(store))
    with store.about("own"):
        store.get(large)
        if vanished:
            shutil.rmtree(source)
        store.keep()
        assert "No space left on device" in caplog.text
        assert "No space left on device" in store.unkept()
        assert store.get(large) == LARGE


def test_what_is_lost_of_a_task_goes_with_it(store: KeptStore, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has a bound too: the largest objects go first."""
    small, large = store.put(SMALL), store.put(LARGE)
    monkeypatch.setattr(kept_store, "HELD", 100)

    def refuse(_data: bytes) -> str:
        raise OperationalError("No space left on device")

    with monkeypatch.context() as full:
        full.setattr(store._own, "put", refuse)
        with store.about("1"):
            assert (store.get(small), store.get(large)) == (SMALL, LARGE)
    assert list(store._held) == [small]
    shutil.rmtree(source)
    with store.about("1"):
        with pytest.raises(OperationalError, match=large):
            store.require_kept()
        store.get(small)
    store.release("1")
    with store.about("1"):
        store.require_kept()


@pytest.mark.parametrize("anew", [False, True])
def test_what_is_read_for_two_tasks_stays_though_the_second_could_not_be_noted(
    store: KeptStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    shared = store.put(SMALL)
    with store.about("hostile"):
        store.get(shared)
    with store.about("honest"):
        store.database.rows("PRAGMA query_only=1")
        store.get(shared)
        with pytest.raises(OperationalError, match=r"party\.sqlite \(attempt to write a readonly database\)"):
            store.require_kept()
        store.database.rows("PRAGMA query_only=0")
    if anew:
        with store.about("honest"):
            store.require_kept()
        store = KeptStore(f"file://{source}", PartyDatabase(tmp_path / "own"))
    store.release("hostile")
    shutil.rmtree(source)
    assert store.get(shared) == SMALL
    assert store.release("honest") == 1


def test_pieces_are_kept_as_they_are_read(
    store: KeptStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, lost = store.put(LARGE), store.put(SMALL)
    with store.about("task"):
        assert b"".join(store.pieces(digest)) == LARGE
        with monkeypatch.context() as full:
            for name in ("put", "copy"):
                full.setattr(store._own, name, no_room)
            assert b"".join(store.pieces(lost)) == SMALL
            with pytest.raises(OperationalError, match="No space left"):
                store.require_kept()
        store.require_kept()
        shutil.rmtree(source)
        assert [b"".join(store.pieces(each)) for each in (digest, lost)] == [LARGE, SMALL]
    assert store.release("task") == 2
    assert not list((tmp_path / "own" / "evidence").glob("??/*"))


def no_room(*_: object, **__: object) -> None:
    raise OperationalError("No space left on device")
