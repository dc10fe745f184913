"""Whole files of filesystems other than HTTP, read within a limit.

The stated size is a hint. A server that lied about it, or a file that grew since, is cut off at the limit.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from fsspec.implementations.local import LocalFileSystem

from pol.training.storage.http_files import HttpPatience, TooLongError, seconds_left, wait

T = TypeVar("T")
PIECE = 1 << 20
"""Bytes that are asked for at a time."""


def read(files: Any, path: str, size: int, limit: int, patience: HttpPatience) -> bytes:
    """All bytes of a file whose stated size is ``size``.

    Raises:
        TooLongError: more than ``limit`` bytes come; at most one byte beyond it is kept.
        OSError: the filesystem fails or is too slow. Its library may raise other errors.
    """
    # Room for one more, so that a file of the size stated needs one read and one that finds the end.
    found = list(pieces(files, path, limit, patience, size + 1))
    return found[0] if len(found) == 1 else b"".join(found)


def pieces(files: Any, path: str, limit: int, patience: HttpPatience, first: int = PIECE) -> Iterator[bytes]:
    """The bytes of a file, piece by piece; the first piece has at most ``first``.

    Raises:
        TooLongError, OSError: as `read`.
    """
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    taken = _Taken(path, limit, patience)
    if "memory" in protocols:
        # Its open files share one position. The file is in this process, so it has an end.
        yield taken.counted(files.cat_file(path))
    elif protocols & {"s3", "s3a"} and files.async_impl:
        # Its open file takes any answer to a range as a block, so its stream is read piece by piece.
        yield from _stream(files, path, taken)
    else:
        file = in_time(files, lambda: files.open(path, "rb"))
        with file:
            while piece := in_time(files, lambda: file.read(taken.next_of(first))):
                yield taken.counted(piece)


def in_time(files: Any, call: Callable[[], T]) -> T:
    """What a filesystem's ``call`` returns, in the time of `within`: a thread waits for a library that can't stop.

    Raises:
        OSError: it takes longer, or fails. Its library may raise other errors.
    """
    left = None if isinstance(files, LocalFileSystem) else seconds_left()
    if left is None:
        return call()
    found = list[T]()
    failed = list[BaseException]()

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001  # of any kind, for the thread that waits
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(left)
    if failed:
        raise failed[0]
    if not found:
        raise OSError("the server doesn't answer in the time for it: try again later, or use another one")
    return found[0]


class _Taken:
    """The number of bytes that have arrived. The least rate is that of a store over HTTP."""

    def __init__(self, path: str, limit: int, patience: HttpPatience) -> None:
        self.size = 0
        self.patience = patience
        self._path, self._limit = path, limit
        self._began = time.monotonic()

    @property
    def room(self) -> int:
        """Bytes to ask for at most: one beyond the limit shows that there are more."""
        return self._limit + 1 - self.size

    def next_of(self, first: int) -> int:
        """Bytes of the next piece, of which the first has at most ``first``."""
        return min(self.room, max(first - self.size, PIECE if self.size else 0))

    def counted(self, piece: bytes) -> bytes:
        """The piece. Raises TooLongError beyond the limit, OSError below the least rate."""
        self.size += len(piece)
        if self.size > self._limit:
            raise TooLongError(f"{self._path} has more than the {self._limit} bytes expected at most")
        if time.monotonic() - self._began > self.patience.answer + self.size / self.patience.rate:
            raise OSError(
                f"{self._path} arrives with less than {self.patience.rate} bytes a second: try again later, or use "
                "another server"
            )
        return bytes(piece)


def _stream(files: Any, path: str, taken: _Taken) -> Iterator[bytes]:
    file = wait(files.open_async, path, "rb")
    try:
        seconds = taken.patience.answer
        while piece := wait(_next, file, min(PIECE, taken.room), seconds):
            yield taken.counted(piece)
            seconds = taken.patience.idle
    finally:
        # The file of s3fs leaves its connection open, and one that isn't at its end would send for ever.
        with suppress(AttributeError):
            file.r.close()


async def _next(file: Any, size: int, seconds: float) -> bytes:
    async with asyncio.timeout(seconds):
        return bytes(await file.read(size))
