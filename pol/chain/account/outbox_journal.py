"""The journal of an outbox: intents and signed transactions, written before they are sent.

A cache: without it, everything starts anew from the chain.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Self

import click

from pol.chain.account.key_turn import KeyTurn
from pol.chain.node.connection import Connection, operational
from pol.errors import OperationalError
from pol.training.storage.party_database import PartyDatabase

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
        self._changed(intent.id)
        return intent

    def add(self, intent: Intent, attempt: Attempt) -> None:
        """Write one more attempt."""
        self._attempts[intent.id].append(attempt)
        self._changed(intent.id)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """Write what became of an intent, or open it again."""
        self._intents[intent.id] = replace(intent, state=state)
        closed = [i.id for i in self._intents.values() if i.state != IntentState.OPEN]
        forgotten = closed[: max(0, len(closed) - self.kept)]
        for old in forgotten:
            del self._intents[old], self._attempts[old]
        self._changed(intent.id, *forgotten)

    def intents(self, state: IntentState) -> list[Intent]:
        """Intents in a state, lowest nonce first."""
        return sorted((i for i in self._intents.values() if i.state == state), key=lambda i: i.nonce)

    def attempts(self, intent: Intent) -> list[Attempt]:
        """The attempts of an intent, oldest first."""
        return list(self._attempts[intent.id])

    def _changed(self, *ids: int) -> None:
        """Intents have changed, or were forgotten."""


class KeptJournal(MemoryJournal):
    """A journal in the table ``outbox`` of a party's database, for one process at a time.

    When a write fails (disk full, folder deleted), ``tell`` gets a message and the journal goes on in memory until one
    succeeds: a missed move loses a game, a lost journal does not.

    Raises:
        OperationalError: another process uses it, or as `PartyDatabase`.
    """

    def __init__(
        self, database: PartyDatabase, account: str, kept: int = KEPT, tell: Callable[[str], None] = LOG.error
    ) -> None:
        super().__init__(kept)
        self._database, self._account, self._tell = database, account, tell
        self._behind = set[int]()
        """Intents whose last change isn't on the disk."""
        database.claim()
        database.create(_TABLE)
        found = database.rows("SELECT id, intent, attempts FROM outbox WHERE account = ? ORDER BY id", account)
        try:
            for self._last, intent, attempts in found:
                nonce, name, to, value, data, gas, state = json.loads(intent)
                told = Intent(self._last, nonce, name, to, value, bytes.fromhex(data), gas, IntentState(state))
                self._intents[self._last] = told
                self._attempts[self._last] = [
                    Attempt(bytes.fromhex(digest), most, tip, bytes.fromhex(raw), cancels)
                    for digest, most, tip, raw, cancels in json.loads(attempts)
                ]
        except (ValueError, TypeError) as error:
            raise database.damaged(error) from error

    @classmethod
    def of(
        cls,
        connection: Connection,
        address: str,
        database: PartyDatabase | None = None,
        tell: Callable[[str], None] = LOG.error,
    ) -> Self:
        """The journal of a key on a chain; without a database in one of the user's folder, which its commands share.

        Raises:
            OperationalError: another process uses it, its folder can't be used, or the node fails.
        """
        with operational("read the first block"):
            genesis = bytes(connection.web3.eth.get_block(0)["hash"])
        name = f"{connection.chain_id}-{genesis.hex()}-{address.lower()}"
        journal = cls(database or PartyDatabase(Path(click.get_app_dir("pol")) / "sent" / name), name, tell=tell)
        journal.turn = KeyTurn(name, for_command=cls is CommandJournal)
        return journal

    def close(self) -> None:
        """Close the database for another process."""
        if self.turn is not None:
            self.turn.end(None)
        self._database.close()

    def _changed(self, *ids: int) -> None:
        were_behind, self._behind = bool(self._behind), self._behind.union(ids)
        gone = self._behind - self._intents.keys()
        try:
            self._database.write(
                *(("DELETE FROM outbox WHERE account = ? AND id = ?", (self._account, each)) for each in gone),
                *(
                    ("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?)", self._row(each))
                    for each in self._behind - gone
                ),
            )
            self._behind = set()
        except OperationalError as error:
            if not were_behind:
                self._tell(f"{error}; until then transactions go on without a journal")

    def _row(self, number: int) -> tuple[str, int, str, str]:
        _, *intent = astuple(self._intents[number])
        attempts = [astuple(attempt) for attempt in self._attempts[number]]
        # As text: SQLite's integers have 64 bits, an amount of wei has more.
        return self._account, number, json.dumps(intent, default=bytes.hex), json.dumps(attempts, default=bytes.hex)


class CommandJournal(KeptJournal):
    """The journal of commands: a done intent stays open in the file until its command has told so (`acknowledge`).

    The next command takes an open intent for its own if the call is the same: it was killed, and is started again.
    """

    def __init__(self, database: PartyDatabase, account: str, tell: Callable[[str], None] = LOG.error) -> None:
        self._done: list[int] = []
        super().__init__(database, account, 0, tell)

    def mark(self, intent: Intent, state: IntentState) -> None:
        """See MemoryJournal."""
        if state is IntentState.DONE:
            self._done.append(intent.id)
        super().mark(intent, state)

    def acknowledge(self) -> None:
        """The command has told what it did: forget it."""
        done, self._done = self._done, []
        self._changed(*done)

    def _changed(self, *ids: int) -> None:
        super()._changed(*(each for each in ids if each not in self._done))
