"""The journal of an outbox: intents and signed transactions, written before they are sent.

A cache: without it, everything starts anew from the chain.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Self

from pol.chain.account.key_turn import KeyTurn
from pol.chain.node.connection import Connection, operational
from pol.errors import OperationalError, reason_of

LOG = logging.getLogger(__name__)
KEPT = 128
"""Closed intents that are kept: a reorganization may reopen one of them."""

_APPLICATION = 0x706F6C31
_TABLES = """
CREATE TABLE chain (genesis BLOB NOT NULL);
CREATE TABLE intents (id INTEGER PRIMARY KEY, nonce INTEGER NOT NULL, name TEXT NOT NULL, recipient TEXT,
                      value TEXT NOT NULL, data BLOB NOT NULL, gas INTEGER NOT NULL, state INTEGER NOT NULL);
CREATE TABLE attempts (hash BLOB NOT NULL, intent INTEGER NOT NULL REFERENCES intents ON DELETE CASCADE,
                       most TEXT NOT NULL, tip TEXT NOT NULL, raw BLOB NOT NULL, cancels INTEGER NOT NULL,
                       PRIMARY KEY (hash, intent));
"""


class IntentState(IntEnum):
    """The state of an intent."""

    OPEN = 1
    DONE = 2
    """One of its attempts is in a block."""
    LOST = 3
    """Another transaction took its nonce, for example its own cancellation, or no node ever accepted it."""


@dataclass(frozen=True)
class Intent:
    """One effect, wanted once, at one nonce. ``to`` is None for a contract creation; ``value`` in wei."""

    id: int
    nonce: int
    name: str
    to: str | None
    value: int
    data: bytes
    gas: int
    state: IntentState = IntentState.OPEN


@dataclass(frozen=True)
class Attempt:
    """A signed transaction at the nonce of an intent; ``cancels`` if it only uses up the nonce. Fees in wei."""

    hash: bytes
    most: int
    tip: int
    raw: bytes
    cancels: bool = False


@dataclass(frozen=True)
class OutgoingCall:
    """A wanted effect: ``to`` None creates a contract; ``value`` in wei; ``gas`` None is found by simulation."""

    name: str
    to: str | None
    value: int = 0
    data: bytes = b""
    gas: int | None = None

    def is_of(self, intent: Intent) -> bool:
        """Whether the intent has the same effect."""
        return (self.to, self.value, self.data) == (intent.to, intent.value, intent.data)


class MemoryJournal:
    """Intents of one key on one chain, with their attempts; ends with the process. Keeps ``kept`` closed intents."""

    turn: KeyTurn | None = None
    """Shared with other journals of the key."""

    def __init__(self, kept: int = 0) -> None:
        self.kept = kept
        self._intents: dict[int, Intent] = {}
        self._attempts: dict[int, list[Attempt]] = {}
        self._last = 0

    def begin(self, intent: Intent, attempt: Attempt) -> Intent:
        """Write an intent and its first attempt; returns the intent with its id."""
        self._last += 1
        intent = replace(intent, id=self._last)
        self._intents[intent.id] = intent
        self._attempts[intent.id] = [attempt]
        return intent

    def add(self, intent: Intent, attempt: Attempt) -> None:
        """Write one more attempt."""
        self._attempts[intent.id].append(attempt)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """Write what became of an intent, or open it again."""
        self._intents[intent.id] = replace(intent, state=state)
        closed = [i for i in self._intents.values() if i.state != IntentState.OPEN]
        for old in closed[: max(0, len(closed) - self.kept)]:
            del self._intents[old.id], self._attempts[old.id]

    def intents(self, state: IntentState) -> list[Intent]:
        """Intents in a state, lowest nonce first."""
        return sorted((i for i in self._intents.values() if i.state == state), key=lambda i: i.nonce)

    def attempts(self, intent: Intent) -> list[Attempt]:
        """The attempts of an intent, oldest first."""
        return list(self._attempts[intent.id])


class SqliteJournal(MemoryJournal):
    """A journal in one SQLite file (WAL, synchronous=FULL) for one process at a time.

    A damaged file, or one of a chain with another genesis, is put aside, and the journal starts empty. When a write
    fails (disk full, directory deleted), ``tell`` gets a message and the journal goes on in memory: a missed move loses
    a game, a lost journal does not.

    Raises:
        OperationalError: another process uses the file, or it can't be created.
    """

    def __init__(self, path: Path, genesis: bytes, kept: int = KEPT, tell: Callable[[str], None] = LOG.error) -> None:
        super().__init__(kept)
        self.path = path
        self._tell = tell
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise OperationalError(f"can't keep a journal at {path}: {reason_of(error)}") from error
        try:
            self._database: sqlite3.Connection | None = self._opened(genesis)
        except (sqlite3.DatabaseError, ValueError) as error:
            match getattr(error, "sqlite_errorcode", None):
                case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                    told = f"another process works with this key on this chain and holds {path}: wait for it, or end it"
                    raise OperationalError(told) from error
                case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_FULL | sqlite3.SQLITE_READONLY:
                    raise OperationalError(f"can't use the journal {path}: {error}") from error
            tell(f"the journal {path} is put aside as {path.name}.damaged ({error}); starting anew from the chain")
            self._put_aside()
            super().__init__(kept)
            self._database = self._opened(genesis)

    @classmethod
    def of(cls, connection: Connection, address: str, directory: Path, tell: Callable[[str], None] = LOG.error) -> Self:
        """The journal of a key on a chain: ``CHAIN-GENESIS-ADDRESS.sqlite`` in a directory.

        Raises:
            OperationalError: another process uses it, it can't be created, or the node fails.
        """
        with operational("read the first block"):
            genesis = bytes(connection.web3.eth.get_block(0)["hash"])
        name = f"{connection.chain_id}-{genesis.hex()[:8]}-{address.lower()}"
        journal = cls(directory / f"{name}.sqlite", genesis, tell=tell)
        journal.turn = KeyTurn(name, for_command=cls is CommandJournal)
        return journal

    def close(self) -> None:
        """Close the file for another process."""
        if self.turn is not None:
            self.turn.end(None)
        if self._database is not None:
            self._database.close()
            self._database = None

    def begin(self, intent: Intent, attempt: Attempt) -> Intent:
        """See MemoryJournal."""
        intent = super().begin(intent, attempt)
        # SQLite's integers have 64 bits: an amount of wei is stored as text.
        values = astuple(replace(intent, value=str(intent.value)))  # type: ignore[arg-type]
        self._write(("INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values), self._inserted(intent, attempt))
        return intent

    def add(self, intent: Intent, attempt: Attempt) -> None:
        """See MemoryJournal."""
        super().add(intent, attempt)
        self._write(self._inserted(intent, attempt))

    def mark(self, intent: Intent, state: IntentState) -> None:
        """See MemoryJournal."""
        before = set(self._intents)
        super().mark(intent, state)
        forgotten = before - set(self._intents)
        self._write(
            ("UPDATE intents SET state = ? WHERE id = ?", (state, intent.id)),
            *(("DELETE FROM intents WHERE id = ?", (i,)) for i in forgotten),
        )

    def _inserted(self, intent: Intent, attempt: Attempt) -> tuple[str, tuple[object, ...]]:
        values = (attempt.hash, intent.id, str(attempt.most), str(attempt.tip), attempt.raw, attempt.cancels)
        return "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?)", values

    def _write(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        if self._database is None:
            return
        try:
            self._database.execute("BEGIN")
            for statement, values in statements:
                self._database.execute(statement, values)
            self._database.execute("COMMIT")
            if not self.path.exists():
                raise sqlite3.OperationalError("the file was deleted")
        except sqlite3.Error as error:
            self._tell(f"the journal {self.path} fails ({error}): going on without it. Repair that, then restart")
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _opened(self, genesis: bytes) -> sqlite3.Connection:
        # isolation_level None: transactions are begun and committed here and nowhere else.
        database = sqlite3.connect(self.path, timeout=0.2, isolation_level=None, check_same_thread=False)
        try:
            # Exclusive before WAL is entered: the lock is held until the process ends, however it ends.
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                database.execute(f"PRAGMA {pragma}").fetchall()
            database.execute("BEGIN EXCLUSIVE")
            if not database.execute("SELECT 1 FROM sqlite_master").fetchall():
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute("INSERT INTO chain VALUES (?)", (genesis,))
                database.execute(f"PRAGMA application_id={_APPLICATION}")
            database.execute("COMMIT")
            self._read(database, genesis)
        except BaseException:
            database.close()
            raise
        return database

    def _read(self, database: sqlite3.Connection, genesis: bytes) -> None:
        """Raises ValueError for a file that isn't this journal, sqlite3.DatabaseError for a damaged one."""
        if database.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
            raise ValueError("it is no journal of this version")
        if database.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise ValueError("it is damaged")
        if database.execute("SELECT genesis FROM chain").fetchall() != [(genesis,)]:
            raise ValueError("it is of another chain with this number")
        for id_, nonce, name, to, value, data, gas, state in database.execute("SELECT * FROM intents ORDER BY id"):
            self._intents[id_] = Intent(id_, nonce, name, to, int(value), data, gas, IntentState(state))
            self._attempts[id_] = []
            self._last = id_
        for hash_, intent, most, tip, raw, cancels in database.execute("SELECT * FROM attempts ORDER BY rowid"):
            self._attempts[intent].append(Attempt(hash_, int(most), int(tip), raw, bool(cancels)))
        if not all(self._attempts.values()):
            raise ValueError("an intent has no attempt")

    def _put_aside(self) -> None:
        os.replace(self.path, self.path.with_name(self.path.name + ".damaged"))
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


class CommandJournal(SqliteJournal):
    """The journal of commands: a done intent stays open in the file until its command has told so (`acknowledge`).

    The next command takes an open intent for its own if the call is the same: it was killed, and is started again.
    """

    def __init__(self, path: Path, genesis: bytes, tell: Callable[[str], None] = LOG.error) -> None:
        self._done: list[Intent] = []
        super().__init__(path, genesis, 0, tell)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """See MemoryJournal."""
        if state is IntentState.DONE:
            MemoryJournal.mark(self, intent, state)
            self._done.append(intent)
        else:
            super().mark(intent, state)

    def acknowledge(self) -> None:
        """The command has told what it did: forget it."""
        self._write(*(("DELETE FROM intents WHERE id = ?", (intent.id,)) for intent in self._done))
