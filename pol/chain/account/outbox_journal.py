"""The journal of an outbox: intents and signed transactions, written before they are sent.

A cache: without it, everything starts anew from the chain.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Self

import click

from pol.chain.node.connection import Connection, operational
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.party_database import PartyDatabase, Statement


class KeyTurn:
    """The turn of one key on one chain; ``name`` is that of the key's journals. The system ends it with its process.

    A command waits for it as long as for a transaction, then refuses: behind another one's nothing gets into a block.
    A process goes on sooner, as beside a stranger: a command that is stopped must not take its clocks.
    """

    def __init__(self, name: str, for_command: bool = False) -> None:
        self.for_command = for_command
        self._path, self._file = Path(click.get_app_dir("pol")) / "sent" / f"{name}.turn", -1

    def take(self) -> bool:
        """Take the turn, unless another one has it; where nothing can be locked it is always free."""
        if self._file >= 0:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            flock(self._file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            self._close()
            return False
        except OSError:
            self._close()
        return True

    def next_nonce(self) -> int:
        """The nonce behind those that have been used in turn; 0 if that isn't known."""
        told = b""
        if self._file >= 0:
            with suppress(OSError):
                told = os.pread(self._file, 20, 0)
        return int(told) if told.isdigit() else 0

    def end(self, nonce: int | None) -> None:
        """The next one's turn, from this nonce on."""
        if self._file >= 0 and nonce is not None:
            with suppress(OSError):
                os.pwrite(self._file, b"%020d" % nonce, 0)
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


LOG = logging.getLogger(__name__)
KEPT = 128
"""Closed intents that are kept: a reorganization may reopen one of them."""
_TABLE = "outbox (account TEXT, id INTEGER, intent TEXT NOT NULL, attempts TEXT NOT NULL, PRIMARY KEY (account, id))"


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


class OutboxJournal:
    """Intents of one key on one chain, with their attempts, in memory and in the table ``outbox`` of a database.

    Only one process at a time uses a database; without one all ends with the process. When a write fails (disk full,
    folder deleted), ``tell`` gets a message and the journal goes on in memory until one succeeds: a missed move loses a
    game, a lost journal does not.

    Args:
        account: the key and the chain; rows of others are left alone.
        kept: how many closed intents are kept; a reorganization may reopen one of them.

    Raises:
        OperationalError: another process uses the database, or as `PartyDatabase`.
    """

    turn: KeyTurn | None = None
    """Shared with other journals of the key."""

    def __init__(
        self,
        database: PartyDatabase | None = None,
        account: str = "",
        kept: int | None = None,
        tell: Callable[[str], None] = LOG.error,
    ) -> None:
        self._database, self._account, self._tell = database, account, tell
        self.kept = kept if kept is not None else KEPT if database else 0
        self._intents: dict[int, Intent] = {}
        self._attempts: dict[int, list[Attempt]] = {}
        self._last = 0
        self._behind = set[int]()
        """Intents whose last change isn't on the disk."""
        if database is not None:
            self._load(database)

    @classmethod
    def of(
        cls,
        connection: Connection,
        address: str,
        database: PartyDatabase | None = None,
        tell: Callable[[str], None] = LOG.error,
    ) -> Self:
        """The journal of a key on a chain: in this database, or in the one that the user's commands with the key share.

        Raises:
            OperationalError: another process uses it, its folder can't be used, or the node fails.
        """
        with operational("read the first block"):
            genesis = bytes(connection.web3.eth.get_block(0)["hash"])
        name = f"{connection.chain_id}-{genesis.hex()}-{address.lower()}"
        journal = cls(database or PartyDatabase(Path(click.get_app_dir("pol")) / "sent" / name), name, tell=tell)
        journal.turn = KeyTurn(name, for_command=cls is CommandJournal)
        return journal

    def begin(self, intent: Intent, attempt: Attempt) -> Intent:
        """Write an intent and its first attempt; returns the intent with its id."""
        self._last += 1
        intent = replace(intent, id=self._last)
        self._intents[intent.id], self._attempts[intent.id] = intent, [attempt]
        self._write(intent.id)
        return intent

    def add(self, intent: Intent, attempt: Attempt) -> None:
        """Write one more attempt."""
        self._attempts[intent.id].append(attempt)
        self._write(intent.id)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """Write an intent's outcome, or open it again."""
        self._intents[intent.id] = replace(intent, state=state)
        closed = [i.id for i in self._intents.values() if i.state != IntentState.OPEN]
        forgotten = closed[: max(0, len(closed) - self.kept)]
        for old in forgotten:
            del self._intents[old], self._attempts[old]
        self._write(intent.id, *forgotten)

    def intents(self, state: IntentState) -> list[Intent]:
        """Intents in a state, lowest nonce first."""
        return sorted((i for i in self._intents.values() if i.state == state), key=lambda i: i.nonce)

    def attempts(self, intent: Intent) -> list[Attempt]:
        """The attempts of an intent, oldest first."""
        return list(self._attempts[intent.id])

    def close(self) -> None:
        """Close the database for another process."""
        if self.turn is not None:
            self.turn.end(None)
        if self._database is not None:
            self._database.close()

    def _load(self, database: PartyDatabase) -> None:
        database.claim()
        database.create(_TABLE)
        found = database.rows("SELECT id, intent, attempts FROM outbox WHERE account = ? ORDER BY id", self._account)
        try:
            for self._last, intent, attempts in found:
                nonce, name, to, value, data, gas, state = canonical_json.parse(intent.encode(), "an intent")
                told = Intent(self._last, nonce, name, to, value, bytes.fromhex(data), gas, IntentState(state))
                self._intents[self._last] = told
                self._attempts[self._last] = [
                    Attempt(bytes.fromhex(digest), most, tip, bytes.fromhex(raw), cancels)
                    for digest, most, tip, raw, cancels in canonical_json.parse(attempts.encode(), "attempts")
                ]
            if not all(self._attempts.values()):
                raise ValueError("an intent has no attempt")
        except (ValueError, TypeError, ProtocolError) as error:
            self._tell(f"the outbox in {database.path} is damaged ({error}): it begins anew from the chain")
            self._intents, self._attempts = {}, {}
            database.write(("DELETE FROM outbox WHERE account = ?", (self._account,)))

    def _write(self, *ids: int) -> None:
        """Write what has become of intents: in one transaction, with what the disk has refused before."""
        if self._database is None:
            return
        is_told, self._behind = bool(self._behind), self._behind.union(ids)
        statements = list[Statement]()
        for number in self._behind:
            statements.append(("DELETE FROM outbox WHERE account = ? AND id = ?", (self._account, number)))
            if number in self._intents:
                _, *intent = astuple(self._intents[number])
                attempts = [astuple(attempt) for attempt in self._attempts[number]]
                # As text: SQLite's integers have 64 bits, an amount of wei has more.
                told = (json.dumps(each, default=bytes.hex) for each in (intent, attempts))
                statements.append(("INSERT INTO outbox VALUES (?, ?, ?, ?)", (self._account, number, *told)))
        try:
            self._database.write(*statements)
            self._behind = set()
        except OperationalError as error:
            if not is_told:
                self._tell(f"{error}; until then transactions go on without a journal")


class CommandJournal(OutboxJournal):
    """The journal of commands: a done intent stays open in the file until its command has told so (`acknowledge`).

    The next command takes an open intent for its own if the call is the same: it was killed, and is started again.
    """

    def __init__(self, database: PartyDatabase, account: str, tell: Callable[[str], None] = LOG.error) -> None:
        self._done: list[int] = []
        super().__init__(database, account, 0, tell)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """See OutboxJournal."""
        if state is IntentState.DONE:
            self._done.append(intent.id)
        super().mark(intent, state)

    def acknowledge(self) -> None:
        """The command has told what it did: forget it."""
        done, self._done = self._done, []
        self._write(*done)

    def _write(self, *ids: int) -> None:
        super()._write(*(each for each in ids if each not in self._done))
