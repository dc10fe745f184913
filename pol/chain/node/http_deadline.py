"""HTTP requests with one bound on their whole time: connection, headers and body.

The timeout of requests is for each piece that comes, so a server that sends a byte now and then holds its caller for
hours, in the headers too. Here every wait for bytes ends with what is left of the whole.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ReadTimeoutError
from urllib3.poolmanager import PoolManager
from urllib3.util.ssl_ import create_urllib3_context

_PIECE = 1 << 16
_current = threading.local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Requests of `bounded_session` that this thread makes inside end by then, with ``requests.Timeout``."""
    before = getattr(_current, "end", None)
    _current.end = time.monotonic() + seconds
    try:
        yield
    finally:
        _current.end = before


def bounded_session() -> requests.Session:
    """A session that keeps to `within`."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter())
    return session


class TooLong(requests.RequestException):
    """An answer has more bytes than its reader takes."""


def body_of(response: requests.Response, limit: int) -> bytes:
    """The bytes of an answer that was asked for with ``stream=True``, decoded.

    Raises:
        TooLong: they are more than ``limit``.
        requests.RequestException: they break off, or take too long.
    """
    body = bytearray()
    for piece in response.iter_content(_PIECE):
        body += piece
        if len(body) > limit:
            raise TooLong(f"more than {limit} bytes")
    return bytes(body)


def is_timeout(error: requests.RequestException) -> bool:
    """Whether time was over; in a body requests calls that a broken connection."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(inner, ReadTimeoutError)


def _wait_no_longer(waiting: socket.socket) -> None:
    end = getattr(_current, "end", None)
    if end is None:
        return
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the whole time is over")
    waiting.settimeout(left)


class _Socket(socket.socket):
    def recv_into(self, *arguments: Any, **options: Any) -> int:
        _wait_no_longer(self)
        return super().recv_into(*arguments, **options)


class _SecureSocket(ssl.SSLSocket):
    """Of the context: urllib3 wraps whatever socket it has made."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        _wait_no_longer(self)
        return super().recv_into(*arguments, **options)


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        left = made.gettimeout()
        bounded = _Socket(made.family, made.type, made.proto, fileno=made.detach())
        bounded.settimeout(left)
        return bounded


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=_context(), **options)
        _take(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, ssl_context=_context(), **options)
        _take(manager)
        return manager


def _context() -> ssl.SSLContext:
    context = create_urllib3_context()
    context.sslsocket_class = _SecureSocket
    return context


def _take(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _Pool, "https": HTTPSConnectionPool}
