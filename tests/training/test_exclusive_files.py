"""Files that are created only if there are none: of several writers at the same time one wins, and it is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import boto3
import fsspec
import pytest
from failing_stores import MoveFileSystem
from moto.server import ThreadedMotoServer

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store

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
