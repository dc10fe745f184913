"""What a process has decided and why, for people: nothing is decided by it, and it may be deleted at any time."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pol.errors import OperationalError
from pol.roles.process.party_process import Result, Taken

LOG = logging.getLogger(__name__)
_TABLE = """CREATE TABLE IF NOT EXISTS decisions (
    at INTEGER NOT NULL, task BLOB NOT NULL, verb TEXT NOT NULL, why TEXT NOT NULL,
    result TEXT NOT NULL, detail TEXT NOT NULL, until INTEGER)"""
_INSERT = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)"


class Diary:
    """Decisions in one SQLite file (WAL). What is decided again for the same reason is written once.

    A diary that can't be written is told to ``tell`` and left alone: a process that can't remember why it acts goes on.

    Raises:
        OperationalError: the file can't be opened, or is no diary.
    """

    def __init__(self, path: Path, tell: Callable[[str], None] = LOG.error) -> None:
        self._path, self._tell = path, tell
        self._last: dict[bytes, tuple[str, str, str, str]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database: sqlite3.Connection | None = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL").fetchall()
            self._database.execute(_TABLE)
            for taken in self.decisions():
                self._last[taken.task_id] = _kind(taken)
        except (OSError, sqlite3.Error) as error:
            raise OperationalError(f"can't use the diary {path}: {error}; name another --data folder") from error

    def note(self, taken: Taken) -> bool:
        """Write a decision; whether it says something that the one before about the task didn't."""
        if self._last.get(taken.task_id) == _kind(taken):
            return False
        self._last[taken.task_id] = _kind(taken)
        row = (taken.at, taken.task_id, taken.verb, taken.why, taken.result, taken.detail, taken.until)
        if self._database is not None:
            try:
                self._database.execute(_INSERT, row)
            except sqlite3.Error as error:
                self._tell(f"the diary {self._path} can't be written ({error}): going on without it")
                with suppress(sqlite3.Error):
                    self._database.close()
                self._database = None
        return True

    def decisions(self, task_id: bytes | None = None) -> list[Taken]:
        """All decisions, or those about a task, oldest first."""
        if self._database is None:
            return []
        where, values = ("", ()) if task_id is None else (" WHERE task = ?", (task_id,))
        rows = self._database.execute(f"SELECT * FROM decisions{where} ORDER BY rowid", values)
        return [
            Taken(at, task, verb, why, Result(result), detail, until)
            for at, task, verb, why, result, detail, until in rows
        ]

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _kind(taken: Taken) -> tuple[str, str, str, str]:
    return taken.verb, taken.why, taken.result, taken.detail
