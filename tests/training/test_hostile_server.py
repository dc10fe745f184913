"""A store's server that lies, never ends, dawdles or redirects elsewhere: an error, in bounded memory and time."""

import base64
import gzip
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback_server import Quiet, certify, serving
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.http_files import HttpFiles, HttpPatience, wait, within
from pol.training.storage.store import CorruptObjectError, Store

GOOD = bytes(range(256)) * 9000
"""More than two blocks."""
QUICK = HttpPatience(connect=60.0, answer=0.3, idle=0.3, rate=1 << 20)
PATIENT = HttpPatience(connect=60.0, answer=60.0, idle=60.0, rate=1 << 20)
DAWDLING = {"drip", "silent", "mute"}
PIECE = b"x" * (1 << 16)
BOMB = gzip.compress(bytes(1 << 26))


class Handler(Quiet):
    """What it does stands in the server's ``manner``."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        """As the manner has it; of a head a length, true or not."""
        if self.command == "GET":
            getattr(self, f"get_{self.server.manner}")()
            return
        self.server.over.wait(30 if self.server.manner == "slow_head" else 0)
        self.head({"liar": 10, "boaster": 1 << 50, "crumbs": 1 << 30}.get(self.server.manner, len(GOOD)))

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

    get_liar = get_boaster = get_endless

    def get_crumbs(self) -> None:
        """Of each part one byte, and in time."""
        self.server.asked += 1
        self.head(1, 206)
        self.wfile.write(b"x")

    def get_locked(self) -> None:
        known = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"me:secret").decode()
        if (
            known
            and "session=7" in self.headers.get("Cookie", "")
            and self.path.endswith("?token=a")
            and self.headers.get("X-Own") == "1"
        ):
            self.get_honest()
        else:
            self.head(0, 401)

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
    with serving(Handler, manner="honest", elsewhere="", asked=0) as found:
        yield found


def store_of(server: Any) -> Store:
    return Store(server.url, patience=QUICK if server.manner in DAWDLING else PATIENT)


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
        ("round", "redirects more than"),
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


@pytest.mark.parametrize("how", ["get", "pieces", "open_file", "read", "exists"])
def test_who_has_to_speak_in_time_waits_for_no_body(server: Any, how: str) -> None:
    """Each byte comes soon enough for the least rate; the reader has less time, for all its reads together."""
    server.manner, store = ("drip" if how != "exists" else "slow_head", Store(server.url, patience=PATIENT))
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: store.get(DIGEST),
        "pieces": lambda: list(store.pieces(DIGEST)),
        "open_file": lambda: store.open_file(DIGEST).__enter__().read(100),
        "read": lambda: store.read("record.json"),
        "exists": lambda: store.exists(DIGEST),
    }
    began = time.monotonic()
    with within(0.5), within(1000.0):
        for told in ("in time", "is over"):
            with pytest.raises(OperationalError, match=told):
                reads[how]()
    assert time.monotonic() - began < PATIENT.answer / 2


def test_a_library_that_never_returns_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over other protocols than HTTP, a library decides how long it waits."""
    store, over = Store("memory://stuck"), threading.Event()
    monkeypatch.setattr(store._files, "size", lambda path: over.wait(60))
    with within(0.2), pytest.raises(OperationalError, match="in the time for it"):
        store.get(DIGEST)
    over.set()


def test_nobody_sends_us_to_another_host_or_scheme(server: Any) -> None:
    server.manner, port = "elsewhere", server.server_port
    for place in (f"http://localhost:{port}/x", f"https://127.0.0.1:{port}/x", f"http://127.0.0.1:{port + 1}/x"):
        server.elsewhere = place
        with pytest.raises(OperationalError, match="another host or scheme"):
            store_of(server).get(DIGEST)


def test_a_read_without_a_size_believes_no_length(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.manner, store = "boaster", store_of(server)
    with store.open_file(DIGEST) as file:
        with pytest.raises(OperationalError, match=rf"{1 << 50} more bytes.*at most {1 << 30} are read.*in parts"):
            file.read()
        assert len(file.read(100)) == 100
    server.manner = "honest"
    monkeypatch.setattr("pol.training.storage.store.AT_ONCE", len(GOOD) - 5)
    with store.open_file(DIGEST) as file:
        with pytest.raises(OperationalError, match="in parts"):
            file.read()
        assert file.read(5) + file.read() == GOOD


def test_a_file_in_crumbs_is_left(server: Any) -> None:
    """One byte a request, each in time: the time for the file would have no bound."""
    server.manner = "crumbs"
    with store_of(server).open_file(DIGEST) as file, pytest.raises(OperationalError, match="sends 1 of the 1048576"):
        file.read(1 << 20)
    assert server.asked == 1


def test_slow_parts_add_up(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server can't begin its time anew with each part."""
    part = HttpFiles.part

    def slow(files: HttpFiles, url: str, start: int, count: int) -> bytes:
        clock.append(clock[-1] + 40.0)
        return part(files, url, start, count)

    clock = [0.0]
    patience = HttpPatience(answer=60.0, rate=1 << 20)
    monkeypatch.setattr(HttpFiles, "part", slow)
    files = HttpFiles(patience=patience)
    monkeypatch.setattr("pol.training.storage.http_files.time.monotonic", lambda: clock[-1])
    file = files.open(f"{server.url}/{DIGEST}")
    file.read(1 << 20)
    with pytest.raises(OSError, match="bytes a second"):
        file.read(1 << 20)


@pytest.mark.filterwarnings("ignore:(?i).*auth.*:DeprecationWarning")  # aiohttp 4 will take no `auth`
def test_options_of_requests_are_honored(server: Any) -> None:
    from aiohttp import BasicAuth

    server.manner, url = "locked", server.url
    options: dict[str, Any] = {
        "auth": BasicAuth("me", "secret"),
        "cookies": {"session": "7"},
        "params": {"token": "a"},
        "headers": {"X-Own": "1"},
    }
    assert Store(url, options, PATIENT).get(DIGEST) == GOOD
    for name in options:
        with pytest.raises(OperationalError, match="status 401"):
            Store(url, {k: v for k, v in options.items() if k != name}, PATIENT).get(DIGEST)


def test_the_option_ssl_is_honored(server: Any, tmp_path: Path) -> None:
    """A certificate that nobody knows is refused, unless the user says otherwise or gives its authority."""
    certificate, key = certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_port}"
    with pytest.raises(OperationalError, match=r"(?i)certificate"):
        Store(url, patience=PATIENT).get(DIGEST)
    for choice in (False, ssl.create_default_context(cafile=str(certificate))):
        assert Store(url, {"ssl": choice}, PATIENT).get(DIGEST) == GOOD


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"block_size": 5, "nosuch": 1}, "options block_size, nosuch: leave them out; it takes auth"),
        ({"timeout": 3}, "options timeout.*patience"),
        ({"client_kwargs": {"timeout": 3}}, "timeout in client_kwargs.*patience"),
        ({"get_client": None}, "get_client"),
    ],
)
def test_options_that_are_not_honored_are_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(OperationalError, match=told):
        Store("http://127.0.0.1:9", options)
    assert Store("http://127.0.0.1:9", {"skip_instance_cache": True}).url


def test_a_connector_of_the_user_serves_more_than_one_request(server: Any) -> None:
    from aiohttp import TCPConnector

    async def make() -> TCPConnector:
        return TCPConnector(limit=1)

    async def close() -> None:
        await connector.close()

    connector = wait(make)
    store = Store(server.url, {"client_kwargs": {"connector": connector}}, PATIENT)
    assert store.get(DIGEST) == store.get(DIGEST) == GOOD
    wait(close)
