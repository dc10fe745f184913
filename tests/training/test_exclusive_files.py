"""Files that are created only if there are none: of several writers at the same time one wins, and it is whole."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import boto3
import fsspec
import pytest
from failing_stores import MoveFileSystem
from moto.server import ThreadedMotoServer

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store

NAME = "lease.json"


def writes(url: str, number: int) -> bool:
    return Store(url).create(NAME, bytes([number]) * 1000)


def test_one_of_many_processes_wins(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/new/folder"
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        won = [number for number, is_first in enumerate(pool.map(partial(writes, url), range(16))) if is_first]
    assert len(won) == 1
    store = Store(url)
    assert store.read(NAME) == bytes(won) * 1000
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [NAME], "no temporary file is left"
    store.remove(NAME)
    store.remove(NAME)
    assert not store.holds(NAME)
    assert store.create(NAME, b"again")


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
