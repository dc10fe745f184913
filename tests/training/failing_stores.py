"""Stores that fail at a chosen call, and the training that is recorded into them."""

import os
from collections.abc import Callable
from typing import Any

import torch
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from torch import nn

from pol import Recorder
from pol.errors import OperationalError
from pol.training import Checkpoints
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store
from stored_state import load_state

WAITING = Checkpoints(background=False)
STEPS, EVERY = 2, 2


class Failure:
    """Counts calls; the one with the number ``at`` fails, before it does anything or after, once or from then on."""

    def __init__(self, at: int | None = None, after: bool = False, lasting: bool = False):
        self.calls, self.at, self.after, self.lasting = 0, at, after, lasting
        self.log: list[str] = []

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        number, self.calls = self.calls, self.calls + 1
        self.log.append(name)
        fails = self.at is not None and (number == self.at or (self.lasting and number > self.at))
        if fails and not self.after:
            raise OSError(28, "No space left on device")
        result = action()
        if fails:
            raise OSError(5, "Input/output error")
        return result


class ObjectFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec declares no types
    """Shows its bytes when it is closed, as an upload in parts does; every part may fail."""

    DEFAULT_BLOCK_SIZE = 200

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.blocksize = self.DEFAULT_BLOCK_SIZE
        self.parts = b""

    def _initiate_upload(self) -> None:
        pass

    def _upload_chunk(self, final: bool = False) -> bool:
        def upload() -> None:
            self.buffer.seek(0)
            self.parts += self.buffer.read()
            if final:
                self.fs.objects[self.path] = self.parts

        self.fs.failure.call("upload", upload)
        return True

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self.fs.objects[self.path][start:end])


class UploadFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec declares no types
    """Objects in memory that appear when an upload ends; the class attributes are those of the test in progress."""

    protocol = ("s3", "pol-upload")
    cachable = False
    objects: dict[str, bytes]
    failure: Failure

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        def find() -> dict[str, Any]:
            if path not in self.objects:
                raise FileNotFoundError(path)
            return {"name": path, "size": len(self.objects[path]), "type": "file"}

        return dict(self.failure.call("info", find))

    def exists(self, path: str, **_: Any) -> bool:
        return bool(self.failure.call("exists", lambda: path in self.objects))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.failure.call("makedirs", lambda: None)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        def move() -> None:
            self.objects[path2] = self.objects.pop(path1)

        self.failure.call("mv", move)

    def rm_file(self, path: str) -> None:
        self.failure.call("rm", lambda: self.objects.pop(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        return bytes(self.failure.call("cat", lambda: self.objects[path][start:end]))

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> ObjectFile:
        kwargs.pop("block_size", None)
        return ObjectFile(self, path, mode, **kwargs)


class MoveFileSystem(UploadFileSystem):
    """The same, not known as a store of objects."""

    protocol = "pol-move"


class FailingOs:
    """The module `os` as `pol.training.storage.atomic_files` sees it, with calls that fail."""

    CALLS = frozenset({"open", "mkdir", "fsync", "replace", "unlink", "fstat"})

    def __init__(self, failure: Failure):
        self.failure = failure

    def __getattr__(self, name: str) -> Any:
        # What is tested here is the order of calls, not the disk.
        real = (lambda _: None) if name == "fsync" else getattr(os, name)
        if name not in self.CALLS:
            return real
        return lambda *arguments: self.failure.call(name, lambda: real(*arguments))


def train(
    store: Store | str, steps: int = STEPS, checkpoints: Checkpoints = WAITING, **options: Any
) -> tuple[LearningRecord, int]:
    """Train and go on after errors of the store; the record and the number of errors."""
    torch.manual_seed(0)
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    recorder = Recorder(store, model, optimizer, every=EVERY, checkpoints=checkpoints, **options)
    errors = 0
    try:
        recorder.resume()
        recorder.flush()
    except OperationalError:
        return recorder.record, 1
    while recorder.steps < steps:
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        try:
            recorder.step()
        except OperationalError:
            errors += 1
    try:
        recorder.close()
    except OperationalError:
        errors += 1
    return recorder.record, errors


def require_whole(store: Store) -> LearningRecord | None:
    """Everything that the store's newest record names is there and is what the record says."""
    if not store.holds(learning_record.HEAD):
        return None
    record = learning_record.load_record(store)
    for checkpoint in record.checkpoints:
        saved = stored_checkpoint.load_document(store, checkpoint.object)
        assert (saved.step, saved.root) == (checkpoint.step, checkpoint.root)
        assert load_state(store, saved).root == checkpoint.root
    return record
