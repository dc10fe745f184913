"""HTTP requests with one deadline for connection, headers and body together.

The timeout of `requests` restarts with each piece, so a server that sends a byte now and then could hold its caller for
hours. Here every wait for bytes ends at the deadline.
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
    """Set the deadline of this thread's requests in a `bounded_session`; they raise ``requests.Timeout`` then."""
    before = getattr(_current, "end", None)
    _current.end = time.monotonic() + seconds
    try:
        yield
    finally:
        _current.end = before


def bounded_session() -> requests.Session:
    """A session that keeps the deadline of `within`."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter())
    return session


def session_to(url: str) -> requests.Session:
    """A `bounded_session` for one URL: proxies, certificates and ~/.netrc are read once, not with each request."""
    session = bounded_session()
    found = session.merge_environment_settings(url, {}, None, None, None)
    session.proxies, session.verify = found["proxies"], found["verify"]
    session.auth = requests.utils.get_netrc_auth(url)
    session.trust_env = False
    return session


class TooLong(requests.RequestException):
    """An answer is longer than its reader's limit."""


def body_of(response: requests.Response, limit: int) -> bytes:
    """The decoded bytes of an answer, requested with ``stream=True``.

    Raises:
        TooLong: more than ``limit`` bytes.
        requests.RequestException: the answer breaks off, or takes too long.
    """
    body = bytearray()
    for piece in response.iter_content(_PIECE):
        body += piece
        if len(body) > limit:
            raise TooLong(f"more than {limit} bytes")
    return bytes(body)


def is_timeout(error: requests.RequestException) -> bool:
    """Whether an error is a timeout; `requests` reports one within a body as a broken connection."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(inner, ReadTimeoutError)


def _apply_deadline(waiting: socket.socket) -> None:
    end = getattr(_current, "end", None)
    if end is None:
        return
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the whole time is over")
    waiting.settimeout(left)


class _Socket(socket.socket):
    def recv_into(self, *arguments: Any, **options: Any) -> int:
        _apply_deadline(self)
        return super().recv_into(*arguments, **options)


class _SecureSocket(ssl.SSLSocket):
    """The socket class of the TLS context, which wraps urllib3's own socket."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        _apply_deadline(self)
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
        _use_bounded_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, ssl_context=_context(), **options)
        _use_bounded_pools(manager)
        return manager


def _context() -> ssl.SSLContext:
    context = create_urllib3_context()
    context.sslsocket_class = _SecureSocket
    return context


def _use_bounded_pools(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _Pool, "https": HTTPSConnectionPool}
