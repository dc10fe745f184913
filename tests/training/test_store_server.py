"""Stores on servers, over HTTP and S3: what is in them, nothing else, and chunks that lead to the recorded roots."""

import asyncio
import dataclasses
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from failing_stores import require_whole, train
from moto.server import ThreadedMotoServer

from ended_process import ran
from pol.cli.record.store_server import serve
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints, Sealing
from pol.training.record import learning_record, recorded_chunks
from pol.training.record.learning_record import LearningRecord
from pol.training.storage.store import Store


@dataclasses.dataclass
class Served:
    """A store that is being served."""

    folder: Path
    url: str
    record: LearningRecord

    def get(self, path: str, **options: object) -> requests.Response:
        return requests.get(self.url + path, timeout=300, **options)

    def raw(self, line: str) -> bytes:
        """The answer to a request line that no library would send."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=300) as connection:
            connection.sendall(f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n".encode("latin-1"))
            found = b""
            while piece := connection.recv(1 << 16):
                found += piece
            return found


def serving(folder: Path, record: LearningRecord) -> Iterator[Served]:
    loop, ports, started = asyncio.new_event_loop(), [], threading.Event()

    def ready(port: int) -> None:
        ports.append(port)
        started.set()

    task = loop.create_task(serve(Store(f"file://{folder}"), "127.0.0.1", 0, ready))

    def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(300)
    yield Served(folder, f"http://127.0.0.1:{ports[0]}", record)
    loop.call_soon_threadsafe(task.cancel)
    thread.join(300)
    loop.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.json").write_text("secret")
    record, _ = train(
        f"file://{folder}/store", 6, checkpoints=Checkpoints(background=False, updates=True, full_every=2)
    )
    (folder / "store" / "secret.json").write_text("secret")
    (folder / "store" / "link").symlink_to(folder / "secret.json")
    yield from serving(folder / "store", record)


def test_it_is_a_store(served: Served) -> None:
    """fsspec's http filesystem reads it: everything that the record names, checked."""
    store = Store(served.url)
    assert require_whole(store) == served.record
    for write in (lambda: store.put(b"x"), lambda: store.replace("record.json", b"x")):
        with pytest.raises(OperationalError):
            write()
    assert learning_record.load_record(Store(f"file://{served.folder}")) == served.record


def test_ranges(served: Served) -> None:
    name = f"{served.record.checkpoints[0].root.hex()}.safetensors"
    path = f"/{name[:2]}/{name}"
    data = (served.folder / name[:2] / name).read_bytes()
    assert served.get(path).content == data
    for text, expected in {
        "0-0": data[:1],
        "5-9": data[5:10],
        "5-": data[5:],
        "-7": data[-7:],
        f"0-{len(data) + 100}": data,
    }.items():
        found = served.get(path, headers={"Range": f"bytes={text}"})
        assert (found.status_code, found.content) == (206, expected)
        assert found.headers["Content-Range"].endswith(f"/{len(data)}")
    for text in (f"bytes={len(data)}-", "bytes=9-5", "bytes=a-b", "lines=1-2"):
        assert served.get(path, headers={"Range": text}).status_code == 416
    head = requests.head(served.url + path, timeout=300)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, str(len(data)), b"")


@pytest.mark.parametrize(
    "path",
    [
        "/", "/secret.json", "/link", "/../secret.json", "/%2e%2e/secret.json", "/..%2fsecret.json",
        "//etc/passwd", "/ab/../../secret.json", "/record.json/..", "/record.json%00", "/00/" + "0" * 64,
        "/00/" + "1" * 64, "/00/" + "0" * 63, "/00/" + "0" * 64 + "/..", "/00/" + "0" * 64 + ".JSON",
        "/chunk/99/0/0", "/chunk/-1/0/0", "/chunk/0/0", "/chunk/0/0/" + "9" * 40, "/chunk/" + "\u0661" + "/0/0",
        "http://elsewhere/secret.json",
    ],
)  # fmt: skip
def test_nothing_else_is_there(served: Served, path: str) -> None:
    answer = served.raw(f"GET {path.encode().decode('latin-1')} HTTP/1.1")
    assert answer.split(b" ", 2)[1] in (b"400", b"404"), answer
    assert b"secret" not in answer.lower().replace(b"/secret.json", b"")
    assert str(served.folder).encode() not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_is_read_only(served: Served, method: str) -> None:
    before = sorted(served.folder.rglob("*"))
    found = requests.request(method, f"{served.url}/record.json", data=b"x" * 10, timeout=300)
    assert found.status_code == 405
    assert sorted(served.folder.rglob("*")) == before


def test_chunks(served: Served) -> None:
    """Any pair of numbers names a leaf; what comes back leads to the root in the record."""
    for checkpoint in (0, 1, 3):
        for position, leaf in ((0, 0), (1, 1), (5, 3), (123456, 654321)):
            data = served.get(f"/chunk/{checkpoint}/{position}/{leaf}").content
            proof = recorded_chunks.decode(data)
            assert proof.root() == served.record.checkpoints[checkpoint].root
            assert recorded_chunks.encode(proof) == data
            wrong = dataclasses.replace(proof, leaf=bytes([proof.leaf[0] ^ 1]) + proof.leaf[1:] if proof.leaf else b"")
            assert not proof.leaf or wrong.root() != proof.root()


def test_chunks_that_are_none(served: Served) -> None:
    data = served.get("/chunk/0/0/0").content
    for changed in (
        data[:-1],
        data.replace(b"pol/chunk", b"pol/lump"),
        data.replace(b'"version":1', b'"version":2'),
        data.replace(b'"leaf":"', b'"leaf":"0'),
        data.replace(b'"leaf":"', b'"leaf":"zz'),
        data.replace(b'"state_branch":["', b'"state_branch":["AB'),
        data.replace(b'"state_branch":[', b'"state_branch":[1,'),
        data.replace(b'"type":{', b'"type":{"a":1,'),
    ):
        with pytest.raises(ProtocolError):
            recorded_chunks.decode(changed)


def test_a_sealed_store(tmp_path: Path) -> None:
    """Files and the record are served as they are; there are no chunks without a key."""
    record, _ = train(
        f"file://{tmp_path}", 2, sealing=Sealing(opening_key=X25519PrivateKey.from_private_bytes(bytes(range(32))))
    )
    for served in serving(tmp_path, record):
        assert served.get("/chunk/0/0/0").status_code == 503
        assert LearningRecord.decode(served.get("/record.json").content) == record


def test_an_empty_store_and_a_taken_port(tmp_path: Path, served: Served) -> None:
    for empty in serving(tmp_path, served.record):
        assert empty.get("/record.json").status_code == 404
        assert empty.get("/chunk/0/0/0").status_code == 503
    port = int(served.url.rpartition(":")[2])
    with pytest.raises(OperationalError, match="can't listen"):
        asyncio.run(serve(Store(f"file://{tmp_path}"), "127.0.0.1", port, lambda _: None))


def test_the_command(served: Served) -> None:
    """`pol serve` prints an address, `pol check` reads it, and an interrupt ends it without a traceback."""
    pol = [sys.executable, "-m", "pol.cli.main"]
    server = subprocess.Popen(
        [*pol, "serve", str(served.folder), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        ran([*pol, "check", server.stdout.readline().split()[-1]])
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=300)
    assert server.returncode == 130
    assert "Traceback" not in errors


PART = 5 << 20


"""The least bytes of a part of an upload."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def service(endpoint: str) -> Any:
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    client.create_bucket(Bucket="bucket")
    return client


def options(endpoint: str) -> dict[str, Any]:
    return {"endpoint_url": endpoint, "key": "x", "secret": "x", "client_kwargs": {"region_name": "us-east-1"}}


def names(service: Any) -> list[str]:
    return [item["Key"] for item in service.list_objects_v2(Bucket="bucket").get("Contents", [])]


def test_a_recorded_training(endpoint: str, service: Any) -> None:
    store = Store("s3://bucket/run", options(endpoint))
    record, errors = train(store, 4, Checkpoints(background=False, updates=True))
    assert errors == 0
    again, _ = train(Store("s3://bucket/run", options(endpoint)), 6, Checkpoints(background=False, updates=True))
    assert again.checkpoints[:3] == record.checkpoints
    assert require_whole(store) == again
    assert not [name for name in names(service) if "/." in name]


def test_an_upload_in_parts(endpoint: str, service: Any) -> None:
    """Nothing is seen before it has ended; one that fails leaves neither an object nor parts that are paid for."""
    store = Store("s3://bucket/parts", options(endpoint))
    store._files.default_block_size = PART
    name = f"{'a' * 64}.bin"
    seen = []

    def pieces(fails: bool) -> Iterator[bytes]:
        for _ in range(3):
            yield bytes(PART)
            seen.append([n for n in names(service) if n.startswith("parts/")])
            uploads.append(len(service.list_multipart_uploads(Bucket="bucket").get("Uploads", [])))
        if fails:
            raise OSError("the power went")

    uploads: list[int] = []
    with pytest.raises(OperationalError, match="the power went"):
        store.put_file(name, pieces(True))
    assert max(uploads) == 1
    assert service.list_multipart_uploads(Bucket="bucket").get("Uploads", []) == []
    store.put_file(name, pieces(False))
    assert seen == [[]] * 6
    with store.open_file(name) as file:
        assert file.size == 3 * PART


def test_a_server_that_is_gone(service: Any) -> None:
    lost = options("http://127.0.0.1:1") | {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1}}
    with pytest.raises(OperationalError, match=r"look for record\.json in s3://bucket/run"):
        Store("s3://bucket/run", lost).holds("record.json")
    with pytest.raises(OperationalError, match="write object"):
        Store("s3://bucket/run", lost).put(b"x")


def test_a_bucket_that_is_missing(endpoint: str) -> None:
    """It isn't made: whoever pays for it does that."""
    with pytest.raises(OperationalError, match="write object"):
        Store("s3://nobody-made-this/run", options(endpoint)).put(b"x")
