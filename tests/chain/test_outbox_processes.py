"""What journals keep, and journals that are damaged."""

import os
from pathlib import Path

import pytest
from manual_node import COUNTER, count, pool

from pol.chain.account.outbox_journal import Attempt, Intent, IntentState, MemoryJournal, SqliteJournal
from pol.errors import OperationalError

pytestmark = pytest.mark.long

GENESIS = b"\x01" * 32
INTENT = Intent(0, 5, "move", COUNTER, 10**20, b"\x01\x02", 100_000)
ATTEMPT = Attempt(b"\x02" * 32, 2**200, 7, b"raw")


def journals(path: Path) -> list[MemoryJournal]:
    return [MemoryJournal(kept=2), SqliteJournal(path, GENESIS, kept=2)]


def test_both_journals_keep_the_same(tmp_path: Path) -> None:
    """Also where what was given up is sent again as it was: two intents then have the same transaction."""
    path = tmp_path / "deep" / "j.sqlite"
    for journal in journals(path):
        for number in range(4):
            intent = journal.begin(INTENT, Attempt(bytes([number]) * 32, 1, 1, b"raw"))
            journal.add(intent, Attempt(bytes([number, 1]) * 16, 2**200, 2, b"other", cancels=True))
            journal.mark(intent, IntentState.DONE)
        opened = journal.begin(INTENT, ATTEMPT)
        assert [i.id for i in journal.intents(IntentState.DONE)] == [3, 4]
        assert journal.intents(IntentState.OPEN) == [opened]
        if isinstance(journal, SqliteJournal):
            journal.close()
            again = SqliteJournal(path, GENESIS, kept=2)
            for state in IntentState:
                assert again.intents(state) == journal.intents(state)
                for intent in again.intents(state):
                    assert again.attempts(intent) == journal.attempts(intent)
            assert again.begin(INTENT, ATTEMPT).id == 6
            assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["noise", "cut", "empty", "other chain", "other tables"])
def test_a_damaged_journal_is_put_aside(damage: str, tmp_path: Path) -> None:
    path, told = tmp_path / "j.sqlite", []
    journal = SqliteJournal(path, GENESIS)
    for _ in range(50):
        journal.begin(INTENT, Attempt(os.urandom(32), 1, 1, os.urandom(500)))
    journal.close()
    content = path.read_bytes()
    match damage:
        case "noise":
            path.write_bytes(b"\xa5" * 5000)
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "empty":
            path.write_bytes(b"")
        case "other tables":
            path.write_bytes(content.replace(b"attempts", b"attempt5"))
    genesis = b"\x09" * 32 if damage == "other chain" else GENESIS
    again = SqliteJournal(path, genesis, tell=told.append)
    assert again.intents(IntentState.OPEN) == []
    assert bool(told) == (damage != "empty")
    again.begin(INTENT, ATTEMPT)
    again.close()
    assert len(SqliteJournal(path, genesis, tell=told.append).intents(IntentState.OPEN)) == 1


def test_a_journal_that_is_deleted_goes_on_in_memory(tmp_path: Path) -> None:
    told: list[str] = []
    with pool() as node:
        journal = SqliteJournal(tmp_path / "j.sqlite", GENESIS, tell=told.append)
        wallet = node.wallet(journal=journal)
        count(wallet)
        for file in tmp_path.iterdir():
            file.unlink()
        count(wallet)
        assert (node.counted(), len(journal.intents(IntentState.DONE))) == (2, 2)
        assert len(told) == 1
        assert "going on without it" in told[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_journal_cannot_be_where_nothing_can_be_written() -> None:
    with pytest.raises(OperationalError, match="can't keep a journal"):
        SqliteJournal(Path("/dev/full/j.sqlite"), GENESIS)
