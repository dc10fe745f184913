"""The decision log of a process, for people. No decision depends on it, and it may be deleted at any time."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pol.errors import OperationalError
from pol.roles.process.party_process import DecisionResult, LoggedDecision

LOG = logging.getLogger(__name__)
_TABLE = """CREATE TABLE IF NOT EXISTS decisions (
    at INTEGER NOT NULL, task BLOB NOT NULL, verb TEXT NOT NULL, why TEXT NOT NULL,
    result TEXT NOT NULL, detail TEXT NOT NULL, until INTEGER)"""
_INSERT = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)"


class DecisionLog:
    """Decisions in one SQLite file (WAL). A decision repeated for the same reason is written once.

    If the file can't be written, that is reported to ``tell`` and the process goes on without it.

    Raises:
        OperationalError: the file can't be opened, or is no decision log.
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
            raise OperationalError(f"can't use the decision log {path}: {error}; name another --data folder") from error

    def note(self, taken: LoggedDecision) -> bool:
        """Write a decision. Returns whether it differs from the last one about the task."""
        if self._last.get(taken.task_id) == _kind(taken):
            return False
        self._last[taken.task_id] = _kind(taken)
        row = (taken.at, taken.task_id, taken.verb, taken.why, taken.result, taken.detail, taken.until)
        if self._database is not None:
            try:
                self._database.execute(_INSERT, row)
            except sqlite3.Error as error:
                self._tell(f"the decision log {self._path} can't be written ({error}): going on without it")
                with suppress(sqlite3.Error):
                    self._database.close()
                self._database = None
        return True

    def decisions(self, task_id: bytes | None = None) -> list[LoggedDecision]:
        """All decisions, or those about a task, oldest first."""
        if self._database is None:
            return []
        where, values = ("", ()) if task_id is None else (" WHERE task = ?", (task_id,))
        rows = self._database.execute(f"SELECT * FROM decisions{where} ORDER BY rowid", values)
        return [
            LoggedDecision(at, task, verb, why, DecisionResult(result), detail, until)
            for at, task, verb, why, result, detail, until in rows
        ]

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _kind(taken: LoggedDecision) -> tuple[str, str, str, str]:
    return taken.verb, taken.why, taken.result, taken.detail
