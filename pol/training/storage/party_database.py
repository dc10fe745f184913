"""The database of a party: one SQLite file in its folder, with a table for each kind of state that it keeps.

A cache: whoever loses it computes, reads and looks for everything again. Large objects lie in files beside it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, TypeAlias

from pol.errors import OperationalError, reason_of

LOG = logging.getLogger(__name__)
FILE = "party.sqlite"
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
_APPLICATION = 0x706F6C32
_BUSY_SECONDS = 10.0


class Damaged(OperationalError):
    """The file can't be believed."""


class PartyDatabase:
    """The file ``party.sqlite`` in a folder, in WAL mode: several processes may share it, if they don't `claim` it.

    A module creates the table that it owns. A kill at any point leaves a transaction whole or absent. A file that is
    damaged, or no database of a party, is put aside, and a new one begins: clocks run for a party that doesn't start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self._lock, self._claim = threading.RLock(), -1
        try:
            self._open()
        except Damaged as error:
            self._database.close()
            aside = self.path.with_name(f"{FILE}.damaged")
            LOG.error("%s is put aside as %s (%s): a new one begins, which costs time", self.path, aside.name, error)
            self._on_disk(lambda: os.replace(self.path, aside))
            for suffix in ("-wal", "-shm"):
                self.path.with_name(FILE + suffix).unlink(missing_ok=True)
            self._open()

    def _open(self) -> None:
        self._on_disk(lambda: self.folder.mkdir(parents=True, exist_ok=True, mode=0o700))
        self._on_disk(lambda: os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)))
        # isolation_level None: transactions are begun and committed here and nowhere else.
        self._database = sqlite3.connect(self.path, _BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._database.close)
        self.rows("PRAGMA journal_mode=WAL")
        if not self.rows("SELECT 1 FROM sqlite_master"):
            self.rows(f"PRAGMA application_id={_APPLICATION}")
        found = self.rows("PRAGMA application_id") + self.rows("PRAGMA quick_check")
        if found != [(_APPLICATION,), ("ok",)]:
            raise Damaged(f"{self.path} is damaged, or no database of a party: {found}")

    def claim(self) -> None:
        """Let no other process claim the folder until `close`, or until this process ends in any way."""
        if self._claim >= 0:
            return
        try:
            self._claim = os.open(self.folder, os.O_RDONLY)
            flock(self._claim, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            self._release()
            told = f"another process works with this key on this chain and holds {self.folder}: wait for it, or end it"
            raise OperationalError(f"{told}; another key needs another folder") from error
        except OSError:  # a filesystem without locks
            pass

    def create(self, table: str) -> None:
        """Create a table unless it is there: ``NAME (COLUMNS)``."""
        self.rows(f"CREATE TABLE IF NOT EXISTS {table}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""
        with self._operational():
            return self._database.execute(query, values).fetchall()

    def write(self, *statements: Statement, flush: bool = True) -> None:
        """Execute statements in one transaction. It outlives a kill, and with ``flush`` a power cut."""
        with self._operational():
            self._database.execute(f"PRAGMA synchronous={'FULL' if flush else 'NORMAL'}")
            with self._database:  # ends the transaction, or takes it back
                self._database.execute("BEGIN IMMEDIATE")
                for statement, values in statements:
                    self._database.execute(statement, values)
            if not self.path.exists():
                raise sqlite3.OperationalError("the file was deleted")

    def close(self) -> None:
        """Close the file, and leave the folder to other processes."""
        self._database.close()
        self._release()

    def _release(self) -> None:
        if self._claim >= 0:
            os.close(self._claim)
            self._claim = -1

    def _on_disk(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            told = f"can't keep a party's state in {self.folder}: {reason_of(error)}"
            raise OperationalError(f"{told}; make it writable, or name another --data folder") from error

    @contextmanager
    def _operational(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            match getattr(error, "sqlite_errorcode", 0) & 0xFF:
                case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                    raise OperationalError(f"another process holds {self.path}: wait for it, or end it") from error
                case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                    raise Damaged(f"{self.path} is damaged ({error}): start again, and it is put aside") from error
            raise OperationalError(f"can't use {self.path} ({error}): make room there, or repair that") from error
