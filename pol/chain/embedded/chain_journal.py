"""A key-value store on disk for the embedded chain: all of it in memory, and each change in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from pol.errors import OperationalError


class ChainJournal(MutableMapping[bytes, bytes]):
    """The store in a file. What changes between two calls of `commit` is there whole or not at all.

    Raises:
        OperationalError: the file can't be read or written. So do `commit` and `close`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changes: dict[bytes, bytes | None] = {}
        with self._operational("open"):
            self._database = sqlite3.connect(path, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
                self._database.execute(f"PRAGMA {pragma}").fetchall()
            self._database.execute("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            self._entries: dict[bytes, bytes] = dict(self._database.execute("SELECT key, value FROM entries"))

    def __getitem__(self, key: bytes) -> bytes:
        return self._entries[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._entries[key] = self._changes[key] = value

    def __delitem__(self, key: bytes) -> None:
        del self._entries[key]
        self._changes[key] = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def commit(self) -> None:
        """Write the changes since the last call."""
        if not self._changes:
            return
        gone = [(key,) for key, value in self._changes.items() if value is None]
        kept = [(key, value) for key, value in self._changes.items() if value is not None]
        with self._operational("write"), self._database:
            self._database.execute("BEGIN")
            self._database.executemany("DELETE FROM entries WHERE key = ?", gone)
            self._database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", kept)
        self._changes.clear()

    def close(self) -> None:
        """Commit, and let go of the file."""
        self.commit()
        with self._operational("write"):
            self._database.close()

    @contextmanager
    def _operational(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OperationalError(f"can't {action} the chain's journal {self._path}: {error}") from error
