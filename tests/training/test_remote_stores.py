"""A training recorded into S3: moto's server on this machine, spoken to by s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from failing_stores import require_whole, train
from moto.server import ThreadedMotoServer

from pol.errors import OperationalError
from pol.training import Checkpoints
from pol.training.storage.store import Store

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
