"""Whatever happens to a store during a recording, what is published is whole; exclusive files have one writer."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import fsspec
import pytest
from failing_stores import EVERY, STEPS, FailingOs, Failure, MoveFileSystem, UploadFileSystem, require_whole, train
from fsspec.implementations.local import LocalFileSystem
from huggingface_hub import HfFileSystem
from killed_recorders import ENOUGH
from moto.server import ThreadedMotoServer

from ended_process import ran
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints
from pol.training.storage import atomic_files
from pol.training.storage.atomic_files import LocalWriter, MoveWriter, UploadWriter, writer_for
from pol.training.storage.store import Store

fsspec.register_implementation("pol-upload", UploadFileSystem)


fsspec.register_implementation("pol-move", MoveFileSystem)


SHOWS = {"replace", "upload", "mv"}


"""Calls after which a reader may see something."""


class Place:
    """One kind of store that can fail: `fresh` empties it."""

    def __init__(self, kind: str, folder: Path, patch: pytest.MonkeyPatch):
        self.kind, self.folder, self.patch = kind, folder, patch

    def fresh(self, failure: Failure) -> Store:
        if self.kind == "file":
            store = Store(f"file://{self.folder}/{uuid.uuid4().hex}")
        else:
            UploadFileSystem.objects = {}
            store = Store(f"{self.kind}://place")
        self.fail(failure)
        return store

    def fail(self, failure: Failure) -> None:
        if self.kind == "file":
            self.patch.setattr(atomic_files, "os", FailingOs(failure))
        else:
            UploadFileSystem.failure = failure


@pytest.fixture(params=["file", "pol-upload", "pol-move"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(request.param, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("updates", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_point_of_failure(place: Place, updates: bool) -> None:
    """Each call to the store fails once, one that shows something also after it has: at most one checkpoint is lost."""
    whole, errors = train(place.fresh(counted := Failure()), checkpoints=Checkpoints(background=False, updates=updates))
    assert (errors, len(whole.checkpoints), counted.calls > 10) == (0, STEPS // EVERY + 1, True)
    roots = [checkpoint.root for checkpoint in whole.checkpoints]
    failed = 0
    for at in range(counted.calls):
        for after in (False, True) if counted.log[at] in SHOWS else (False,):
            store = place.fresh(failure := Failure(at, after))
            record, errors = train(store, checkpoints=Checkpoints(background=False, updates=updates))
            place.fail(Failure())
            found = require_whole(store)
            assert errors <= 1
            failed += errors
            if found is not None:
                # What a store published before it said that it had failed is in the record of a later checkpoint.
                known = [checkpoint.root for checkpoint in found.checkpoints]
                assert set(known) <= set(roots), failure.log[at]
                assert len(known) >= len(roots) - 1 or record.checkpoints == ()
                assert found.checkpoints[: len(record.checkpoints)] == record.checkpoints
            again, errors = train(store, STEPS + EVERY, checkpoints=Checkpoints(background=False, updates=updates))
            assert errors == 0
            assert again.checkpoints[-1].step == STEPS + EVERY
            assert require_whole(store) == again
    assert failed > counted.calls // 2


def test_a_store_that_stays_broken(place: Place) -> None:
    """From some call on everything fails; when the store is back, the run ends with the same root."""
    whole, _ = train(place.fresh(counted := Failure()))
    for at in range(0, counted.calls, 5):
        store = place.fresh(Failure(at, lasting=True))
        train(store)
        place.fail(Failure())
        require_whole(store)
        again, errors = train(store)
        assert errors == 0
        assert again.checkpoints[-1].root == whole.checkpoints[-1].root


def test_an_upload_that_fails_shows_nothing() -> None:
    """Neither leaving the file nor collecting it ends the upload with half of the bytes."""

    def pieces() -> Iterator[bytes]:
        yield b"x" * 1000
        raise KeyboardInterrupt

    for kind in ("pol-upload", "pol-move"):
        UploadFileSystem.objects, UploadFileSystem.failure = {}, Failure()
        with pytest.raises(KeyboardInterrupt):
            Store(f"{kind}://place").put_file(f"{'0' * 64}.bin", pieces())
        assert UploadFileSystem.objects == {}


def test_errors_name_the_file() -> None:
    UploadFileSystem.objects, UploadFileSystem.failure = {}, Failure(0, lasting=True)
    store = Store("pol-upload://place")
    name = f"{'a' * 64}.bin"
    with pytest.raises(OperationalError, match=f"write file {name} to pol-upload://place: .*No space left"):
        store.put_file(name, [b"x"])
    with pytest.raises(OperationalError, match=f"read object {'b' * 64} from pol-upload://place"):
        store.get("b" * 64)
    with pytest.raises(OperationalError, match=r"write record\.json to pol-upload://place"):
        store.replace("record.json", b"x")


def test_what_suits_which_filesystem() -> None:
    """S3 is tested against moto in test_store_server.py; the Hub only up to its class, as there is no network."""
    assert isinstance(writer_for(LocalFileSystem()), LocalWriter)
    assert isinstance(writer_for(fsspec.filesystem("memory")), UploadWriter)
    assert isinstance(writer_for(HfFileSystem(token=False)), UploadWriter)
    assert isinstance(writer_for(fsspec.filesystem("pol-move")), MoveWriter)


def test_options_reach_the_filesystem_and_nothing_else_does() -> None:
    """sftp hands every option that it doesn't know to its library, which refuses it."""

    class Strict(MoveFileSystem):
        protocol = "pol-strict"

        def __init__(self, place: str):
            super().__init__()
            self.place = place

    fsspec.register_implementation("pol-strict", Strict, clobber=True)
    assert Store("pol-strict://x", {"place": "here"})._files.place == "here"
    with pytest.raises(OperationalError, match="can't open the store pol-strict://x"):
        Store("pol-strict://x")


def test_the_hub_is_given_a_whole_file_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """HfFileSystem's own file class, with the two calls cut off that go over the network."""
    files = HfFileSystem(token=False)
    sent: list[tuple[str, bytes]] = []

    class Resolved:
        path = path_in_repo = "aa/object"
        repo_id, repo_type, revision = "somebody/run", "model", "main"

        def unresolve(self) -> str:
            return "somebody/run/aa/object"

    def upload(path_or_fileobj: str, path_in_repo: str, **_: Any) -> None:
        sent.append((path_in_repo, Path(path_or_fileobj).read_bytes()))

    monkeypatch.setattr(files, "resolve_path", lambda *_, **__: Resolved())
    monkeypatch.setattr(files._api, "upload_file", upload)

    def pieces(fails: bool) -> Iterator[bytes]:
        yield b"x" * 1000
        if fails:
            raise OSError("the power went")
        yield b"y"

    with pytest.raises(OSError, match="the power went"):
        writer_for(files).write("somebody/run/aa/object", pieces(True))
    assert sent == []
    writer_for(files).write("somebody/run/aa/object", pieces(False))
    assert sent == [("aa/object", b"x" * 1000 + b"y")]


def test_the_order_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes reach the disk before the name does, and the name before anybody is told."""
    failure = Failure()
    monkeypatch.setattr(atomic_files, "os", FailingOs(failure))
    LocalWriter().write(f"{tmp_path}/ab/file", [b"x"])
    LocalWriter().write(f"{tmp_path}/ab/other", [b"x"])
    one = ["open", "fstat", "fsync", "replace", "open", "fsync"]
    assert failure.log == ["mkdir", "open", "fsync", *one, *one]


def test_only_what_is_left_is_removed(tmp_path: Path) -> None:
    """Temporary files of a killed writer go; those of a living one stay, and so does what isn't ours."""
    store = Store(f"file://{tmp_path}")
    digest = store.put(b"some bytes")
    folder = tmp_path / digest[:2]
    (folder / f".{'0' * 32}").write_bytes(b"half")
    (tmp_path / f".{'1' * 32}").write_bytes(b"half")
    (tmp_path / ".gitignore").write_bytes(b"*")
    cleaned: list[int] = []

    def pieces() -> Iterator[bytes]:
        yield b"x"
        cleaned.append(store.clean())
        yield b"y"

    store.put_file(f"{digest}.bin", pieces())
    assert cleaned == [2]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted([".gitignore", digest, f"{digest}.bin"])
    assert os.path.getsize(folder / f"{digest}.bin") == 2


NAME = "lease.json"


RACE = """
import sys
from pol.training.storage.store import Store

url, own = sys.argv[1:]
store = Store(url)
print(*(int(store.create(f"lease-{number:064x}.json", own.encode() * 1000)) for number in range(100)))
"""


def test_one_of_many_processes_wins(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/new/folder"
    processes = [
        subprocess.Popen([sys.executable, "-c", RACE, url, str(own)], stdout=subprocess.PIPE, text=True)
        for own in range(3)
    ]
    won = [[int(word) for word in process.communicate()[0].split()] for process in processes]
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * 100
    store = Store(url)
    for number, each in enumerate(zip(*won, strict=True)):
        assert store.read(f"lease-{number:064x}.json") == str(each.index(1)).encode() * 1000
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 100, "no temporary file is left"


def test_memory() -> None:
    store = Store("memory://exclusive")
    assert store.create(NAME, b"first")
    assert not store.create(NAME, b"second")
    assert store.read(NAME) == b"first"
    store.remove(NAME)
    store.remove(NAME)
    assert store.create(NAME, b"third")


def test_s3() -> None:
    """A conditional put."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
        ).create_bucket(Bucket="leases")
        store = Store(
            "s3://leases/queue",
            {"endpoint_url": endpoint, "key": "x", "secret": "x", "client_kwargs": {"region_name": "us-east-1"}},
        )
        assert store.create(NAME, b"first")
        assert not store.create(NAME, b"second")
        assert store.read(NAME) == b"first"
        store.remove(NAME)
        store.remove(NAME)
        assert store.create(NAME, b"third")
    finally:
        server.stop()


def test_where_it_can_t_be() -> None:
    fsspec.register_implementation("pol-move", MoveFileSystem, clobber=True)
    with pytest.raises(OperationalError, match="use a folder, S3"):
        Store("pol-move://place").create(NAME, b"x")
    with pytest.raises(ProtocolError, match="isn't the name of a file that can change"):
        Store("memory://exclusive").create("../x", b"x")


PROGRAM = Path(__file__).parent / "killed_recorders.py"


def run(folder: Path, kills: int, seed: int) -> dict[str, dict[str, int]]:
    command = [sys.executable, str(PROGRAM), str(folder), str(kills), str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])}
    done = ran(command, env=environment)
    return dict(json.loads(done.stdout))


@pytest.mark.long
def test_killed_and_resumed(tmp_path: Path) -> None:
    """After each kill the record is whole and only grows; the run ends with the root that it would have had."""
    found = run(tmp_path, 30, 1)
    assert found["killed"]["kills"] >= 30
    assert found["killed"]["with_temporary_files"] >= ENOUGH
    assert found["killed"]["checkpoints"] == 5
    assert found["full"]["errors"] > 2
