"""The database of a party, and each kind of state in it: through kills, full disks, damage and other processes."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pol.chain.account.outbox_journal import Attempt, CommandJournal, Intent, IntentState, OutboxJournal
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.roles.party.execution_journal import ExecutionJournal
from pol.roles.party.kept_store import KeptStore
from pol.roles.process.decision_log import DecisionLog
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.roles.verifier.forced_error_duty import SealedRoots
from pol.training.storage import party_database
from pol.training.storage.party_database import FILE, PartyDatabase
from pol.training.storage.store import Store

TASK, MOST = b"\1" * 32, 2000
INTENT = Intent(0, 5, "move", "0x" + "12" * 20, 10**20, b"\1\2", 100_000)
ATTEMPT = Attempt(b"\2" * 32, 2**200, 7, b"raw")
Write: TypeAlias = Callable[[int], object]
Tell: TypeAlias = Callable[[str], None]


def root(number: int) -> bytes:
    return keccak256(f"{number}".encode())


def outbox(database: PartyDatabase, tell: Tell) -> Write:
    journal = OutboxJournal(database, "account", tell=tell)
    return lambda number: journal.begin(replace(INTENT, nonce=number), ATTEMPT)


def decisions(database: PartyDatabase, tell: Tell) -> Write:
    log = DecisionLog(database, tell)
    return lambda number: log.note(LoggedDecision(number, TASK, "wait", f"{number}", DecisionResult.WAITED))


def sealed_roots(database: PartyDatabase, tell: Tell) -> Write:
    sealed = SealedRoots(database)
    return lambda number: sealed.keep(TASK, number, root(number))


def executions(database: PartyDatabase, tell: Tell) -> Write:
    journal = ExecutionJournal(database, TASK, 3, TASK)
    return lambda number: journal.note(number, root(number))


def evidence(database: PartyDatabase, tell: Tell) -> Write:
    store = KeptStore(f"file://{database.folder}/source", database)

    def read(number: int) -> None:
        with store.about("task"):
            store.get(store.put(f"{number}".encode()))
            if store.unkept():
                tell(store.unkept())

    return read


STORES: dict[str, tuple[Callable[[PartyDatabase, Tell], Write], Callable[[PartyDatabase, int], bool]]] = {
    "outbox": (
        outbox,
        lambda database, n: n in [i.nonce for i in OutboxJournal(database, "account").intents(IntentState.OPEN)],
    ),
    "decisions": (decisions, lambda database, n: n in [each.at for each in DecisionLog(database).decisions(TASK)]),
    "sealed roots": (sealed_roots, lambda database, n: SealedRoots(database).root(TASK, n) == root(n)),
    "executions": (executions, lambda database, n: ExecutionJournal(database, TASK, 3, TASK).roots().get(n) == root(n)),
    "evidence": (
        evidence,
        lambda database, n: (
            (root(n).hex(),) in database.rows("SELECT digest FROM evidence WHERE scope = 'task'")
            and Store(f"file://{database.folder}/evidence").get(root(n).hex()) == f"{n}".encode()
        ),
    ),
}
TELLING = ["outbox", "decisions", "evidence"]
"""They say that they can't write; the others cost a replay."""


@pytest.mark.long
def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """Not even what was written in the moment before it."""
    process = subprocess.Popen([sys.executable, __file__, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4 * len(STORES) + 2)]
    process.kill()
    lines += process.communicate()[0].splitlines()
    database = PartyDatabase(tmp_path)
    for name, number in (json.loads(line) for line in lines if line.endswith(("]", "]\n"))):
        assert STORES[name][1](database, number), (name, number)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("fault", ["full", "read-only", "gone"])
def test_a_disk_that_fails_stops_nothing_and_is_told_once(name: str, fault: str, tmp_path: Path) -> None:
    told: list[str] = []
    database, (begin, has) = PartyDatabase(tmp_path), STORES[name]
    write = begin(database, told.append)
    write(0)
    if fault == "full":
        ((pages,),) = database.rows("PRAGMA page_count")
        database.rows(f"PRAGMA max_page_count={pages}")
    elif fault == "read-only":
        database.rows("PRAGMA query_only=1")
    else:
        database.path.unlink()
    for number in range(1, 200 if fault == "full" else 4):
        write(number)
        if told and number % 4 == 0:
            break
    if name in TELLING:
        assert f"{tmp_path / FILE}" in told[0]
        assert len(told) == 1 or name == "evidence"
    assert len(told) == 0 or name in TELLING
    if fault != "gone":  # the disk has room again
        database.rows("PRAGMA max_page_count=1000000")
        database.rows("PRAGMA query_only=0")
        write(1000)
        assert has(database, 1000)
        assert has(database, 1) or name != "outbox"


@pytest.mark.parametrize("damage", ["noise", "cut", "middle", "other program"])
def test_a_damaged_database_is_refused_and_starts_anew_elsewhere(damage: str, tmp_path: Path) -> None:
    with closing(PartyDatabase(tmp_path)) as database:
        for begin, _ in STORES.values():
            write = begin(database, print)
            for number in range(20):
                write(number)
    file = tmp_path / FILE
    content = file.read_bytes()
    if damage == "other program":
        with closing(party_database.sqlite3.connect(file)) as other:
            other.execute("PRAGMA application_id=7")
    else:
        half = len(content) // 2
        file.write_bytes(
            {"noise": b"\xa5" * 5000, "cut": content[:half], "middle": content[:4096] + bytes(len(content) - 4096)}[
                damage
            ]
        )
    with pytest.raises(OperationalError, match="move it away and start again"):
        PartyDatabase(tmp_path)
    file.rename(tmp_path / "aside")
    with closing(PartyDatabase(tmp_path)) as database:
        assert OutboxJournal(database, "account").intents(IntentState.OPEN) == []


@pytest.mark.parametrize("place", ["/dev/full/party", "/dev/null", "file"])
def test_a_folder_that_cannot_be_written(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match=r"can't keep a party's state in .*name another --data folder"):
        PartyDatabase(tmp_path / place)


def test_two_processes_with_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them sends; the other may read, and write what isn't sent, if the first doesn't write just then."""
    first, second = PartyDatabase(tmp_path), PartyDatabase(tmp_path)
    journal = OutboxJournal(first, "account")
    with pytest.raises(OperationalError, match=r"another process works with this key.*wait for it, or end it"):
        OutboxJournal(second, "account")
    decisions(first, print)(1)
    assert STORES["decisions"][1](second, 1)
    evidence(second, print)(1)
    assert STORES["evidence"][1](first, 1)
    first.rows("BEGIN IMMEDIATE")
    second.rows("PRAGMA busy_timeout=1")
    with pytest.raises(OperationalError, match=r"another process holds .*wait for it, or end it"):
        second.write(("DELETE FROM evidence", ()))
    first.rows("COMMIT")
    journal.close()
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


def test_a_command_keeps_what_it_has_done_until_it_has_told(tmp_path: Path) -> None:
    database = PartyDatabase(tmp_path)
    journal = CommandJournal(database, "account")
    journal.mark(journal.begin(INTENT, ATTEMPT), IntentState.DONE)
    assert journal.intents(IntentState.OPEN) == []
    assert len(CommandJournal(database, "account").intents(IntentState.OPEN)) == 1
    journal.acknowledge()
    assert CommandJournal(database, "account").intents(IntentState.OPEN) == []


@pytest.mark.parametrize("column", ["intent", "attempts"])
@pytest.mark.parametrize("content", ["[]", "[1]", "{", "null"])
def test_an_intent_that_the_disk_has_changed_is_refused(tmp_path: Path, column: str, content: str) -> None:
    database = PartyDatabase(tmp_path)
    OutboxJournal(database, "account").begin(INTENT, ATTEMPT)
    database.write((f"UPDATE outbox SET {column} = ?", (content,)))
    with pytest.raises(OperationalError, match="move it away and start again"):
        OutboxJournal(database, "account")


def test_a_row_that_the_disk_has_changed_is_passed_over(tmp_path: Path) -> None:
    """A wrong root would lose a dispute; SQLite has no checksums."""
    database = PartyDatabase(tmp_path)
    journal = ExecutionJournal(database, TASK, 3, TASK)
    for step in (1, 2):
        journal.note(step, root(step))
        journal.note_row(step, [root(step), root(step + 1)])
    database.write(("UPDATE executions SET roots = zeroblob(length(roots)) WHERE step = 1", ()))
    assert (journal.roots(), journal.row(1), journal.row(2)) == ({2: root(2)}, None, [root(2), root(3)])


def _write_on(folder: Path) -> None:
    database = PartyDatabase(folder)
    writers: dict[str, Any] = {name: begin(database, print) for name, (begin, _) in STORES.items()}
    for number in range(MOST):
        for name, write in writers.items():
            write(number)
            print(json.dumps([name, number]), flush=True)


if __name__ == "__main__":
    _write_on(Path(sys.argv[1]))
