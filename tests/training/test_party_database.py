"""The database of a party, and each kind of state in it: through kills, full disks, damage and other processes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from pol.chain.account.outbox_journal import Attempt, Intent, IntentState, OutboxJournal
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.roles.party import kept_store
from pol.roles.party.execution_journal import ExecutionJournal
from pol.roles.party.kept_store import KeptStore
from pol.roles.process.decision_log import DecisionLog
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.roles.verifier.forced_error_duty import SealedRoots
from pol.training.storage.party_database import FILE, PartyDatabase
from pol.training.storage.store import Store

TASK = b"\1" * 32
INTENT = Intent(0, 5, "move", "0x" + "12" * 20, 10**20, b"\1\2", 100_000)
ATTEMPT = Attempt(b"\2" * 32, 2**200, 7, b"raw")
Write: TypeAlias = Callable[[int], object]
Tell: TypeAlias = Callable[[str], None]


def root(number: int) -> bytes:
    return keccak256(f"{number}".encode())


def writer(kind: str, database: PartyDatabase, tell: Tell = print) -> Write:
    """Writes states of a kind, which have numbers."""
    match kind:
        case "outbox":
            outbox = OutboxJournal(database, "account", tell=tell)
            return lambda n: outbox.begin(replace(INTENT, nonce=n), ATTEMPT)
        case "decisions":
            log = DecisionLog(database, tell)
            return lambda n: log.note(LoggedDecision(n, TASK, "wait", f"{n}", DecisionResult.WAITED))
        case "sealed roots":
            return lambda n: SealedRoots(database).keep(TASK, n, root(n))
        case "executions":
            return lambda n: ExecutionJournal(database, TASK, 3, TASK).note(n, root(n))
    store = KeptStore(f"file://{database.folder}/source", database)

    def read(number: int) -> None:
        with store.about("task"):
            store.get(store.put(f"{number}".encode()))
            if store.unkept():
                tell(store.unkept())

    return read


KEPT: dict[str, Callable[[PartyDatabase, int], bool]] = {
    "outbox": lambda of, n: n in [i.nonce for i in OutboxJournal(of, "account").intents(IntentState.OPEN)],
    "decisions": lambda of, n: n in [each.at for each in DecisionLog(of).decisions(TASK)],
    "sealed roots": lambda of, n: SealedRoots(of).root(TASK, n) == root(n),
    "executions": lambda of, n: ExecutionJournal(of, TASK, 3, TASK).roots().get(n) == root(n),
    "evidence": lambda of, n: (
        of.rows("SELECT scope FROM evidence WHERE digest = ?", root(n).hex()) == [("task",)]
        and Store(f"file://{of.folder}/evidence").get(root(n).hex()) == f"{n}".encode()
    ),
}
"""Whether a new process finds a state."""


@pytest.mark.long
def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """Not even what was written in the moment before it."""
    process = subprocess.Popen([sys.executable, __file__, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4 * len(KEPT) + 2)]
    process.kill()
    lines += process.communicate()[0].splitlines(keepends=True)
    database = PartyDatabase(tmp_path)
    for kind, number in (json.loads(line) for line in lines if line.endswith("]\n")):
        assert KEPT[kind](database, number), (kind, number)


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("fault", ["full", "read-only", "gone"])
def test_a_disk_that_fails_stops_nothing_and_is_told_once(kind: str, fault: str, tmp_path: Path) -> None:
    told: list[str] = []
    database = PartyDatabase(tmp_path)
    write = writer(kind, database, told.append)
    write(0)
    match fault:
        case "full":
            database.rows(f"PRAGMA max_page_count={database.rows('PRAGMA page_count')[0][0]}")
        case "read-only":
            database.rows("PRAGMA query_only=1")
        case "gone":
            database.path.unlink()
    for number in range(1, 200 if fault == "full" else 4):
        write(number)
        if told and number % 4 == 0:
            break
    costs_time_only = kind in {"sealed roots", "executions"}
    assert len(told) == (0 if costs_time_only else 1) or kind == "evidence"
    assert all(str(tmp_path / FILE) in line for line in told)
    if fault != "gone":  # the disk has room again
        database.rows("PRAGMA max_page_count=1000000")
        database.rows("PRAGMA query_only=0")
        write(1000)
        assert KEPT[kind](database, 1000)
        assert KEPT[kind](database, 1) or kind != "outbox"


@pytest.mark.parametrize("damage", ["noise", "cut", "middle", "other program", "outbox"])
def test_a_damaged_database_is_put_aside_and_a_party_starts_anew(damage: str, tmp_path: Path) -> None:
    """Clocks run for a party that doesn't start. What it kept as evidence stays, whoever is done with a part of it."""
    file = tmp_path / FILE
    with closing(PartyDatabase(tmp_path)) as database:
        for kind in KEPT:
            for number in range(20):
                writer(kind, database)(number)
        if damage == "other program":
            database.rows("PRAGMA application_id=7")
        if damage == "outbox":
            database.write(("UPDATE outbox SET attempts = '[]' WHERE id = 3", ()))
    content = file.read_bytes()
    changed = {"noise": b"\xa5" * 5000, "cut": content[:9000], "middle": content[:4096] + bytes(len(content) - 4096)}
    file.write_bytes(changed.get(damage, content))
    (tmp_path / "store").mkdir()
    kept = Store(f"file://{tmp_path}/evidence").put(b"of two tasks")
    with closing(PartyDatabase(tmp_path)) as database:
        assert OutboxJournal(database, "account").intents(IntentState.OPEN) == []
        assert (tmp_path / f"{FILE}.damaged").exists() == (damage != "outbox")
        store = KeptStore(f"file://{tmp_path}/store", database)
        if damage != "outbox":
            with store.about("one"):
                store.get(kept)
            store.release("one")
            assert store.get(kept) == b"of two tasks"


@pytest.mark.parametrize("place", ["/dev/full/party", "/dev/null", "file"])
def test_a_folder_that_cannot_be_written_is_said_before_anything_is_staked(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match=r"can't keep a party's state in .*name another --data folder"):
        PartyDatabase(tmp_path / place)


def test_two_processes_with_one_folder(tmp_path: Path) -> None:
    """One of them sends; the other may read, and write what isn't sent, if the first doesn't write just then."""
    first, second = PartyDatabase(tmp_path), PartyDatabase(tmp_path)
    outbox = OutboxJournal(first, "account")
    with pytest.raises(OperationalError, match=r"another process works with this key.*wait for it, or end it"):
        OutboxJournal(second, "account")
    writer("decisions", first)(1)
    writer("evidence", second)(1)
    assert KEPT["decisions"](second, 1)
    assert KEPT["evidence"](first, 1)
    first.rows("BEGIN IMMEDIATE")
    second.rows("PRAGMA busy_timeout=1")
    with pytest.raises(OperationalError, match=r"another process holds .*wait for it, or end it"):
        second.write(("DELETE FROM evidence", ()))
    first.rows("COMMIT")
    outbox.close()
    OutboxJournal(second, "account")


def test_a_transaction_is_whole_or_absent(tmp_path: Path) -> None:
    database = PartyDatabase(tmp_path)
    database.create("numbers (number INTEGER UNIQUE)")
    with pytest.raises(OperationalError, match="UNIQUE"):
        database.write(*[("INSERT INTO numbers VALUES (?)", (number,)) for number in (1, 2, 1)])
    assert database.rows("SELECT * FROM numbers") == []


def test_journals_in_memory_and_on_disk_keep_the_same(tmp_path: Path) -> None:
    """Also where what was given up is sent again as it was: two intents then have the same transaction."""
    database = PartyDatabase(tmp_path / "deep")
    OutboxJournal(database, "other chain").begin(INTENT, ATTEMPT)
    for journal in (OutboxJournal(kept=2), OutboxJournal(database, "account", kept=2)):
        for number in range(4):
            intent = journal.begin(INTENT, Attempt(bytes([number]) * 32, 1, 1, b"raw"))
            journal.add(intent, Attempt(bytes([number, 1]) * 16, 2**200, 2, b"other", cancels=True))
            journal.mark(intent, IntentState.DONE)
        opened = journal.begin(INTENT, ATTEMPT)
        assert [i.id for i in journal.intents(IntentState.DONE)] == [3, 4]
        assert journal.intents(IntentState.OPEN) == [opened]
    again = OutboxJournal(database, "account", kept=2)
    for state in IntentState:
        assert again.intents(state) == journal.intents(state)
        assert [*map(again.attempts, again.intents(state))] == [*map(journal.attempts, journal.intents(state))]
    assert again.begin(INTENT, ATTEMPT).id == 6
    assert database.path.stat().st_mode & 0o077 == 0


# --- evidence on a disk that is full: told, about the task that it concerns, and never lost for another one -----------

SMALL, LARGE = b"a state of the honest task", bytes(2000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def store(source: Path, tmp_path: Path) -> KeptStore:
    return KeptStore(f"file://{source}", PartyDatabase(tmp_path / "own"))


def no_room(*_: object, **__: object) -> None:
    raise OperationalError("No space left on device")


def limited(store: KeptStore) -> Callable[[bytes], str]:
    """The disk has room for what is small alone."""
    put = store._own.put

    def small(data: bytes) -> str:
        if len(data) > 1000:
            no_room()
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
    with monkeypatch.context() as full:
        full.setattr(store._own, "put", no_room)
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


def test_what_was_refused_of_no_task_stops_no_task_that_keeps_it(
    store: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = store.put(LARGE)
    with monkeypatch.context() as full:
        full.setattr(store._own, "put", no_room)
        store.get(large)
    with store.about("task"):
        store.require_kept()


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


if __name__ == "__main__":
    here = PartyDatabase(Path(sys.argv[1]))
    writers = {kind: writer(kind, here) for kind in KEPT}
    for moment in range(2000):
        for name, write_one in writers.items():
            write_one(moment)
            print(json.dumps([name, moment]), flush=True)
