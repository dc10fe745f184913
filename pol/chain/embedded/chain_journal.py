"""A key-value store on disk for the embedded chain: all of it in memory, and a file to which changes are appended."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from pol.errors import OperationalError

LENGTH = 4
DELETED = (1 << 8 * LENGTH) - 1
"""The length of a value that was deleted."""


class ChainJournal(MutableMapping[bytes, bytes]):
    """The store in a file. A group of changes is there whole or not at all: `commit` appends it in one piece.

    A group is its length and its changes; a change is key and value, each with its length before it (big-endian, four
    bytes).

    Raises:
        OperationalError: the file can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[bytes, bytes] = {}
        self._changes = bytearray()
        try:
            self._file = path.open("a+b")
            self._file.seek(0)
            self._file.truncate(self._read(self._file.read()))
        except OSError as error:
            raise OperationalError(f"can't open the chain's journal {path}: {error.strerror}") from error

    def __getitem__(self, key: bytes) -> bytes:
        return self._entries[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._entries[key] = value
        self._changes += _sized(key) + _sized(value)

    def __delitem__(self, key: bytes) -> None:
        del self._entries[key]
        self._changes += _sized(key) + DELETED.to_bytes(LENGTH, "big")

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def commit(self) -> None:
        """Append the changes since the last call.

        Raises:
            OperationalError: the disk failed.
        """
        if not self._changes:
            return
        try:
            self._file.write(_sized(bytes(self._changes)))
            self._file.flush()
        except OSError as error:
            raise OperationalError(f"can't write the chain's journal {self._path}: {error.strerror}") from error
        self._changes.clear()

    def close(self) -> None:
        """Commit, and let go of the file."""
        self.commit()
        os.fsync(self._file.fileno())
        self._file.close()

    def _read(self, data: bytes) -> int:
        """Apply all whole groups; the end of the last one."""
        at = 0
        while at + LENGTH <= len(data):
            end = at + LENGTH + int.from_bytes(data[at : at + LENGTH], "big")
            if end > len(data):
                break
            self._apply(data[at + LENGTH : end])
            at = end
        return at

    def _apply(self, group: bytes) -> None:
        at = 0
        while at < len(group):
            size = int.from_bytes(group[at : at + LENGTH], "big")
            key, at = group[at + LENGTH : at + LENGTH + size], at + LENGTH + size
            size, at = int.from_bytes(group[at : at + LENGTH], "big"), at + LENGTH
            if size == DELETED:
                self._entries.pop(key, None)
            else:
                self._entries[key], at = group[at : at + size], at + size


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH, "big") + data
