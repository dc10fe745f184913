"""Reading a store over HTTP: this side sets how long an answer may be, how slow, and where it may come from.

A store's server is anybody's. Bytes are asked for as they are and counted as they come, whatever the headers say;
redirects stay on the host and the scheme that the user has named.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import fsspec.asyn

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

T = TypeVar("T")
REDIRECTS = 5
BLOCK = 1 << 20
"""Bytes that are asked for at once where parts of a file are read."""
GONE = {404, 410}
MOVED = {301, 302, 303, 307, 308}


class TooLongError(OSError):
    """A file has more bytes than expected."""


@dataclass(frozen=True)
class Patience:
    """How slow a server may be; seconds."""

    connect: float = 20.0
    answer: float = 60.0
    """To its headers, and so long it may be slower than the least rate."""
    idle: float = 30.0
    """Between two pieces of a body."""
    rate: int = 16 << 10
    """Bytes a second on average: so the time for a whole body has a bound too."""


PATIENCE = Patience()


class HttpFiles:
    """Files below URLs of one origin.

    Args:
        options: of `fsspec`'s filesystem for HTTP: ``headers``, and ``client_kwargs`` of aiohttp's session.
        patience: with the server.
    """

    def __init__(self, options: Mapping[str, Any] | None = None, patience: Patience = PATIENCE) -> None:
        given = dict(options or {})
        self.client = dict(given.get("client_kwargs") or {})
        self.headers = dict(given.get("headers") or {})
        self.patience = patience

    def exists(self, url: str) -> bool:
        """Whether the server has the file.

        Raises:
            OSError: it doesn't say.
        """
        return self._size(url) is not None

    def size(self, url: str) -> int:
        """What the server says of a file's length; nothing is read by it.

        Raises:
            OSError: there is no such file, or the server doesn't say.
        """
        size = self._size(url)
        if size is None:
            raise FileNotFoundError(f"{url} isn't there")
        if size < 0:
            raise OSError("the server doesn't say how long the file is")
        return size

    def read(self, url: str, limit: int, start: int = 0) -> bytes:
        """The bytes of a file from ``start`` on.

        Raises:
            TooLongError: they are more than ``limit``.
            OSError: the server fails, is too slow, encodes the bytes or sends us elsewhere.
        """
        return _wait(self._read, url, limit, start, None)

    def part(self, url: str, start: int, count: int) -> bytes:
        """At most ``count`` bytes of a file from ``start`` on; fewer only at its end. Raises OSError as `read`."""
        return _wait(self._read, url, count, start, count)

    def open(self, url: str) -> HttpFile:
        """A file whose parts are read. Raises OSError as `size`."""
        return HttpFile(self, url, self.size(url))

    def _size(self, url: str) -> int | None:
        return _wait(self._head, url)

    async def _head(self, url: str) -> int | None:
        async with self._asked("HEAD", url, {}) as answer:
            if answer.status in GONE:
                return None
            if answer.status != 200:
                raise OSError(f"{url} answers with status {answer.status}")
            length = answer.headers.get("Content-Length", "")
            return int(length) if length.isdigit() else -1

    async def _read(self, url: str, limit: int, start: int, count: int | None) -> bytes:
        asked = {"Range": f"bytes={start}-{'' if count is None else start + count - 1}"} if start or count else {}
        async with self._asked("GET", url, asked) as answer:
            if answer.status in GONE:
                raise FileNotFoundError(f"{url} isn't there")
            if answer.status == 416:
                return b""
            if answer.status not in {200, 206}:
                raise OSError(f"{url} answers with status {answer.status}")
            if answer.headers.get("Content-Encoding", "identity").lower() not in {"", "identity"}:
                raise OSError(
                    f"{url} is encoded ({answer.headers['Content-Encoding']}) though it was asked for as it is"
                )
            # Whoever ignores the range begins with the first byte.
            skipped = start if answer.status == 200 else 0
            found, seen, began = bytearray(), 0, time.monotonic()
            async for piece in answer.content.iter_any():
                seen += len(piece)
                if time.monotonic() - began > self.patience.answer + seen / self.patience.rate:
                    raise OSError(f"{url} comes with less than {self.patience.rate} bytes a second: use another server")
                found += piece[max(0, skipped - (seen - len(piece))) :]
                if count is not None and len(found) >= count:
                    return bytes(found[:count])
                if len(found) > limit:
                    raise TooLongError(f"{url} has more than the {limit} bytes expected at most")
            return bytes(found)

    @asynccontextmanager
    async def _asked(self, method: str, url: str, more: Mapping[str, str]) -> AsyncIterator[ClientResponse]:
        """The answer to a request, whatever its status, from the origin that was asked."""
        from aiohttp import ClientSession, ClientTimeout

        timeout = ClientTimeout(total=None, sock_connect=self.patience.connect, sock_read=self.patience.idle)
        headers = {**self.headers, **more, "Accept-Encoding": "identity"}
        options = {**self.client, "timeout": timeout, "auto_decompress": False}
        async with ClientSession(**options) as session:
            answer = await self._answered(session, method, url, headers)
            try:
                yield answer
            finally:
                answer.close()

    async def _answered(
        self, session: ClientSession, method: str, url: str, headers: Mapping[str, str]
    ) -> ClientResponse:
        from yarl import URL

        here = URL(url)
        for _ in range(REDIRECTS + 1):
            async with asyncio.timeout(self.patience.answer):
                answer = await session.request(method, here, headers=headers, allow_redirects=False)
            if answer.status not in MOVED:
                return answer
            answer.close()
            there = here.join(URL(answer.headers.get("Location", "")))
            if there.origin() != here.origin():
                raise OSError(
                    f"{here} sends us to {there}, another host or scheme: if you trust that, name it as the store"
                )
            here = there
        raise OSError(f"{url} sends us on more than {REDIRECTS} times")


class HttpFile:
    """One file, read in parts; as Python's own files."""

    def __init__(self, files: HttpFiles, url: str, size: int) -> None:
        self.files, self.url, self.size = files, url, size
        self._position, self._begin, self._block = 0, 0, b""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end; all that is left if it is negative."""
        left = max(0, self.size - self._position)
        wanted = left if size < 0 else min(size, left)
        at = self._position - self._begin
        if not 0 <= at <= len(self._block) or at + wanted > len(self._block):
            self._begin, at = self._position, 0
            self._block = self.files.part(self.url, self._begin, min(left, max(wanted, BLOCK))) if wanted else b""
        found = self._block[at : at + wanted]
        self._position += len(found)
        return found

    def seek(self, position: int) -> None:
        """Go to a position, counted from the start."""
        self._position = position

    def close(self) -> None:
        """Forget what was read."""
        self._block = b""


def _wait(function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """Run something on the thread of fsspec's loop, whether this one has a loop or not."""
    try:
        found: T = fsspec.asyn.sync(fsspec.asyn.get_loop(), function, *arguments)
    except TimeoutError as error:
        raise OSError("the server doesn't answer in time: try again later, or use another one") from error
    return found
