"""A store's server that lies, never ends, dawdles or sends us elsewhere: an error, in bounded memory and time."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.http_files import Patience
from pol.training.storage.store import CorruptObjectError, Store

GOOD = bytes(range(256)) * 9000
"""More than two blocks."""
QUICK = Patience(connect=2.0, answer=0.3, idle=0.3, rate=1 << 20)
PIECE = b"x" * (1 << 16)
BOMB = gzip.compress(bytes(1 << 26))


class Handler(BaseHTTPRequestHandler):
    """What it does stands in the server's ``manner``."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: object) -> None:
        """Not to the terminal."""

    def do_HEAD(self) -> None:
        """A length, true or not."""
        self.head(len(GOOD) if self.server.manner != "liar" else 10)

    def do_GET(self) -> None:
        """As the manner has it."""
        getattr(self, f"get_{self.server.manner}")()

    def head(self, length: int | None, status: int = 200, **more: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def get_honest(self) -> None:
        asked = self.headers.get("Range")
        first, last = (asked or "bytes=0-").removeprefix("bytes=").split("-")
        body = GOOD[int(first) : int(last or len(GOOD)) + 1]
        self.head(len(body), 206 if asked else 200)
        self.wfile.write(body)

    def get_whole(self) -> None:
        """Ranges are ignored."""
        self.head(len(GOOD))
        self.wfile.write(GOOD)

    def get_endless(self) -> None:
        self.close_connection = True
        self.head(None, Connection="close")
        while not self.server.over.is_set():
            self.wfile.write(PIECE)

    get_liar = get_endless

    def get_bomb(self) -> None:
        self.head(len(BOMB), Content_Encoding="gzip")
        self.wfile.write(BOMB)

    def get_drip(self) -> None:
        self.head(len(GOOD))
        while not self.server.over.wait(0.05):
            self.wfile.write(b"x")
            self.wfile.flush()

    def get_silent(self) -> None:
        self.head(len(GOOD))
        self.server.over.wait(30)

    def get_mute(self) -> None:
        self.server.over.wait(30)

    def get_short(self) -> None:
        self.head(len(GOOD))
        self.wfile.write(GOOD[:100])
        self.close_connection = True

    def get_elsewhere(self) -> None:
        self.head(0, 302, Location=self.server.elsewhere)

    def get_round(self) -> None:
        self.head(0, 302, Location=self.path)


@pytest.fixture
def server() -> Iterator[Any]:
    found: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.manner, found.over, found.elsewhere, found.daemon_threads = "honest", threading.Event(), "", True
    found.handle_error = lambda *_: None
    thread = threading.Thread(target=found.serve_forever, args=(0.05,))
    thread.start()
    yield found
    found.over.set()
    found.shutdown()
    found.server_close()
    thread.join()


def store_of(server: Any) -> Store:
    return Store(f"http://127.0.0.1:{server.server_port}", patience=QUICK)


DIGEST = keccak256(GOOD).hex()


@pytest.mark.parametrize("manner", ["honest", "whole"])
def test_honest_servers_are_read(server: Any, manner: str) -> None:
    server.manner, store = manner, store_of(server)
    assert store.get(DIGEST) == GOOD
    assert store.exists(DIGEST)
    with store.open_file(DIGEST) as file:
        assert (file.size, file.read(5)) == (len(GOOD), GOOD[:5])
        file.seek(len(GOOD) - 3)
        assert file.read(10) == GOOD[-3:]
        file.seek(1000)
        assert file.read() == GOOD[1000:]


@pytest.mark.parametrize(
    ("manner", "told"),
    [
        ("bomb", "is encoded"),
        ("drip", "bytes a second"),
        ("silent", "timeout|in time"),
        ("mute", "in time"),
        ("short", "not enough|payload|completed"),
        ("round", "sends us on"),
    ],
)
def test_a_server_that_wastes_our_time_is_left(server: Any, manner: str, told: str) -> None:
    server.manner = manner
    with pytest.raises(OperationalError, match=f"(?i){told}"):
        store_of(server).get(DIGEST)


@pytest.mark.parametrize("manner", ["endless", "liar"])
def test_no_more_is_read_than_was_expected(server: Any, manner: str) -> None:
    """Whatever the headers say of the length."""
    server.manner, store = manner, store_of(server)
    tracemalloc.start()
    with pytest.raises(CorruptObjectError, match="more than the 4194304 bytes"):
        store.get(DIGEST, limit=4 << 20)
    with pytest.raises(ProtocolError, match="more than the 1000 bytes"):
        store.read("record.json", limit=1000)
    with store.open_file(DIGEST) as file:
        assert len(file.read(100)) <= 100
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_nobody_sends_us_to_another_host_or_scheme(server: Any) -> None:
    server.manner, port = "elsewhere", server.server_port
    for place in (f"http://localhost:{port}/x", f"https://127.0.0.1:{port}/x", f"http://127.0.0.1:{port + 1}/x"):
        server.elsewhere = place
        with pytest.raises(OperationalError, match="another host or scheme"):
            store_of(server).get(DIGEST)
