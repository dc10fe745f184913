"""Stores that aren't HTTP: what comes is counted, whatever size was stated; URLs that stand on others are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback_server import Quiet, serving
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.http_files import HttpPatience
from pol.training.storage.store import CorruptObjectError, Store

DATA = bytes(range(256)) * 20000
DIGEST = keccak256(DATA).hex()
MOST = 1 << 27
"""Bytes after which the server gives up on a reader that takes all of them."""


class Bucket(Quiet):
    """An S3 endpoint that states a length of 10 and sends what its manner is."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        if self.command == "HEAD":
            self.begin(10)
        elif "list-type" in self.path:
            self.reply(404)
        elif self.server.manner == "drip":
            self.begin(10)
            self.server.over.wait(30)
        else:
            self.begin(MOST)
            self.close_connection = True
            while self.server.sent < MOST and not self.server.over.is_set():
                self.wfile.write(bytes(1 << 16))
                self.server.sent += 1 << 16

    def begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 08:00:00 GMT")
        self.end_headers()


@pytest.fixture
def server() -> Iterator[Any]:
    with serving(Bucket, manner="endless", sent=0) as found:
        yield found


def bucket(server: Any) -> Store:
    options = {
        "endpoint_url": server.url,
        "key": "x",
        "secret": "x",
        "client_kwargs": {"region_name": "us-east-1"},
        "skip_instance_cache": True,
    }
    return Store("s3://bucket/run", options, HttpPatience(answer=1.0, idle=0.5))


def test_an_object_of_s3_longer_than_stated(server: Any) -> None:
    with pytest.raises(CorruptObjectError, match="more than the 1000 bytes"):
        bucket(server).get(DIGEST, limit=1000)
    with pytest.raises(ProtocolError, match="more than the 1000 bytes"):
        bucket(server).read("record.json", limit=1000)
    assert server.sent < MOST // 4


def test_an_object_of_s3_that_never_comes(server: Any) -> None:
    server.manner = "drip"
    with pytest.raises(OperationalError, match="in time"):
        bucket(server).get(DIGEST, limit=1000)


@pytest.mark.parametrize("url", ["file://{}", "memory://{}"])
def test_a_file_longer_than_stated(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may come between the size and the bytes; so does a record that grows, which is read whole."""
    store = Store(url.format(tmp_path / "store"))
    store.put(DATA)
    store.replace("record.json", DATA)
    monkeypatch.setattr(store._files, "size", lambda path: 10)
    with pytest.raises(CorruptObjectError, match="more than the 1000 bytes"):
        store.get(DIGEST, limit=1000)
    with pytest.raises(ProtocolError, match="more than the 1000 bytes"):
        store.read("record.json", limit=1000)
    assert store.get(DIGEST) == store.read("record.json", limit=len(DATA)) == DATA


def test_an_object_that_is_too_long_is_written_anew(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    store.put(DATA)
    path = tmp_path / DIGEST[:2] / DIGEST
    path.write_bytes(DATA + b"x")
    store.put(DATA)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("simplecache::http://127.0.0.1:9/run", {}),
        ("filecache::s3://bucket/run", {}),
        ("zip://inside::http://127.0.0.1:9/run.zip", {}),
        ("simplecache://127.0.0.1:9/run", {"target_protocol": "http"}),
        ("zip://inside", {"fo": "http://127.0.0.1:9/run.zip"}),
        ("reference://run", {"remote_options": {}}),
        ("generic://http://127.0.0.1:9/run", {}),
        ("dir://run", {"target_protocol": "http", "path": "http://127.0.0.1:9"}),
    ],
)
def test_a_filesystem_on_another_is_refused(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(OperationalError, match=r"one filesystem on another.*name the inner URL"):
        Store(url, options)
