"""Reads a store over HTTP: the reader bounds an answer's length, its time and its origin.

Anybody may run a store's server. Bytes are requested without encoding and counted as they arrive, whatever the headers
say. Redirects stay on the host and scheme that the user has named. The reader may say `within` how many seconds all
that it reads has to be there, however long it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import fsspec.asyn

from pol.errors import OperationalError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

T = TypeVar("T")
REDIRECTS = 5
BLOCK = 1 << 20
"""Bytes of one request where parts of a file are read."""
GONE = {404, 410}
MOVED = {301, 302, 303, 307, 308}
OF_REQUESTS = frozenset({"auth", "cookies", "params", "proxy", "proxy_auth", "proxy_headers", "server_hostname", "ssl"})
"""Options that are passed to each request of aiohttp."""
OF_FSSPEC = frozenset({"listings_expiry_time", "max_paths", "skip_instance_cache", "use_listings_cache"})
"""Options that fsspec consumes when it makes its filesystem."""
OWN = frozenset({"client_kwargs", "encoded", "headers"})
BOUNDS = frozenset({"auto_decompress", "loop", "raise_for_status", "timeout"})
"""Options of aiohttp's session that only this module sets."""


_END: ContextVar[float] = ContextVar("_END", default=inf)


@contextmanager
def within(seconds: float, at_least: bool = False) -> Iterator[None]:
    """A context: all that this thread reads from servers inside has this time, whatever their rate, or is an OSError.

    An inner context never gets more time than an outer one; ``at_least`` so much, if it is about something else.
    """
    token = _END.set((max if at_least else min)(_END.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _END.reset(token)


def seconds_left() -> float | None:
    """Seconds until the end of `within`; None outside of it. Raises OSError: they are over."""
    left = _END.get() - time.monotonic()
    if left <= 0:
        raise OSError("the time that this party has for reading is over: try again later, or use another server")
    return None if left == inf else left


class TooLongError(OSError):
    """A file has more bytes than expected."""


@dataclass(frozen=True)
class HttpPatience:
    """How slow a server may be, in seconds."""

    connect: float = 20.0
    answer: float = 60.0
    """Until its headers; also the time during which it may be slower than the least rate."""
    idle: float = 30.0
    """Between two pieces of a body."""
    rate: int = 16 << 10
    """Bytes a second on average, which bounds the time for a whole body."""
    total: float | None = None
    """For a whole request with its body, where an answer is so short that it needs no rate."""


DEFAULT_PATIENCE = HttpPatience()


class HttpFiles:
    """Files below URLs of one origin.

    Args:
        options: of `fsspec`'s filesystem for HTTP: ``headers``, ``encoded``, ``client_kwargs`` of aiohttp's session,
            and options of an aiohttp request (``auth``, ``ssl``, ``proxy`` and so on).
        patience: with the server.
        redirects: how often it may redirect.

    Raises:
        OperationalError: an unknown option; a dropped one could be the one that protects somebody.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        patience: HttpPatience = DEFAULT_PATIENCE,
        redirects: int = REDIRECTS,
    ) -> None:
        given = dict(options or {})
        _require_known(given)
        self.client = dict(given.get("client_kwargs") or {})
        if "connector" in self.client:
            # Each request has a session of its own, and none of them may close the user's connector.
            self.client.setdefault("connector_owner", False)
        self.headers = dict(given.get("headers") or {})
        self.requests = {name: given[name] for name in OF_REQUESTS & given.keys()}
        self.encoded = bool(given.get("encoded"))
        self.patience, self.redirects = patience, redirects

    def exists(self, url: str) -> bool:
        """Whether the server has the file. Raises OSError: it doesn't say."""
        return self._size(url) is not None

    def size(self, url: str) -> int:
        """The file's length as the server states it; no read relies on it.

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
            OSError: the server fails, is too slow, encodes the bytes or redirects to another origin.
        """
        return wait(self._read, url, limit, start, None)

    def part(self, url: str, start: int, count: int) -> bytes:
        """At most ``count`` bytes of a file from ``start`` on; fewer only at its end. Raises OSError as `read`."""
        return wait(self._read, url, count, start, count)

    def open(self, url: str) -> HttpFile:
        """A file to read in parts. Raises OSError as `size`."""
        return HttpFile(self, url, self.size(url))

    def _size(self, url: str) -> int | None:
        return wait(self._head, url)

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
                raise FileNotFoundError(f"{url} isn't there (status {answer.status})")
            if answer.status == 416:
                return b""
            if answer.status not in {200, 206}:
                raise OSError(f"{url} answers with status {answer.status}")
            if answer.headers.get("Content-Encoding", "identity").lower() not in {"", "identity"}:
                raise OSError(
                    f"{url} is encoded ({answer.headers['Content-Encoding']}), though no encoding was requested"
                )
            # A server that ignores the range begins with the first byte.
            skipped = start if answer.status == 200 else 0
            found, seen, began = bytearray(), 0, time.monotonic()
            async for piece in answer.content.iter_any():
                seen += len(piece)
                if time.monotonic() - began > self.patience.answer + seen / self.patience.rate:
                    raise _too_slow(url, self.patience)
                found += piece[max(0, skipped - (seen - len(piece))) :]
                if count is not None and len(found) >= count:
                    return bytes(found[:count])
                if len(found) > limit:
                    raise TooLongError(f"{url} has more than the {limit} bytes expected at most")
            return bytes(found)

    @asynccontextmanager
    async def _asked(self, method: str, url: str, more: Mapping[str, str]) -> AsyncIterator[ClientResponse]:
        """The answer to a request, with any status, from the requested origin."""
        from aiohttp import ClientSession, ClientTimeout

        timeout = ClientTimeout(total=None, sock_connect=self.patience.connect, sock_read=self.patience.idle)
        headers = {**self.headers, **more, "Accept-Encoding": "identity"}
        options = {**self.client, "timeout": timeout, "auto_decompress": False}
        async with asyncio.timeout(self.patience.total), ClientSession(**options) as session:
            answer = await self._answered(session, method, url, headers)
            try:
                yield answer
            finally:
                answer.close()

    async def _answered(
        self, session: ClientSession, method: str, url: str, headers: Mapping[str, str]
    ) -> ClientResponse:
        from yarl import URL

        here = URL(url, encoded=self.encoded)
        for _ in range(self.redirects + 1):
            async with asyncio.timeout(self.patience.answer):
                answer = await session.request(method, here, headers=headers, allow_redirects=False, **self.requests)
            if answer.status not in MOVED or not self.redirects:
                return answer
            answer.close()
            there = here.join(URL(answer.headers.get("Location", "")))
            if there.origin() != here.origin():
                raise OSError(
                    f"{here} redirects to {there}, another host or scheme: if you trust that, name it as the store"
                )
            here = there
        raise OSError(f"{url} redirects more than {self.redirects} times")


class HttpFile:
    """One file, read in parts. The bounds on a body hold for the whole file, not for each part."""

    def __init__(self, files: HttpFiles, url: str, size: int) -> None:
        self.files, self.url, self.size = files, url, size
        self._position, self._begin, self._block = 0, 0, b""
        self._seconds, self._read = 0.0, 0

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; fewer only at the stated end."""
        left = max(0, self.size - self._position)
        wanted = min(size, left)
        at = self._position - self._begin
        if not 0 <= at <= len(self._block) or at + wanted > len(self._block):
            self._begin, at = self._position, 0
            self._block = self._part(min(left, max(wanted, BLOCK))) if wanted else b""
        found = self._block[at : at + wanted]
        self._position += len(found)
        return found

    def seek(self, position: int) -> None:
        """Go to a position, counted from the start."""
        self._position = position

    def close(self) -> None:
        """Drop the buffered block."""
        self._block = b""

    def _part(self, count: int) -> bytes:
        began, patience = time.monotonic(), self.files.patience
        found = self.files.part(self.url, self._begin, count)
        self._seconds += time.monotonic() - began
        self._read += len(found)
        if len(found) < count:
            # If short answers were accepted, one byte a request would make a body without end.
            raise OSError(
                f"the server states {self.size} bytes for {self.url}, and sends {len(found)} of the {count} from byte "
                f"{self._begin} on: try again later, or use another server"
            )
        if self._seconds > patience.answer + self._read / patience.rate:
            raise _too_slow(self.url, patience)
        return found


def _require_known(options: Mapping[str, Any]) -> None:
    taken = OF_REQUESTS | OWN
    if unknown := sorted(map(str, options.keys() - taken - OF_FSSPEC)):
        raise OperationalError(
            f"a store over HTTP doesn't take the options {', '.join(unknown)}: leave them out; it takes "
            f"{', '.join(sorted(taken))}; its patience says how slow a server may be"
        )
    if bounds := sorted(BOUNDS & dict(options.get("client_kwargs") or {}).keys()):
        raise OperationalError(
            f"a store over HTTP doesn't take {', '.join(bounds)} in client_kwargs: leave it out; the store's "
            "patience says how slow a server may be"
        )


def _too_slow(url: str, patience: HttpPatience) -> OSError:
    return OSError(f"{url} arrives with less than {patience.rate} bytes a second: use another server")


def wait(function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """Run a coroutine function on the thread of fsspec's loop, whether this thread has a loop or not.

    Raises:
        OSError: the server is too slow or breaks off. Other errors of ``function`` pass through.
    """
    from aiohttp import ClientError

    try:
        found: T = fsspec.asyn.sync(fsspec.asyn.get_loop(), function, *arguments, timeout=seconds_left())
    except TimeoutError as error:
        raise OSError("the server doesn't answer in time: try again later, or use another one") from error
    except ClientError as error:
        raise error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}") from error
    return found
