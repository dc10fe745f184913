"""How a file of a store becomes visible: whole, or not at all.

A folder of this machine: written under a temporary name, flushed to the disk, renamed, and the folder flushed. A store
in which a file appears when its upload ends (S3, the Hugging Face Hub, memory): written in place. Anything else:
written under a temporary name and moved.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Pieces: TypeAlias = Iterable[bytes | bytearray | memoryview]

WHOLE_AT_CLOSE = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "ocilake", "tos", "hf", "memory"}
)
"""Protocols in which nobody sees an object before its upload has ended."""

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}")


class FileWriter(Protocol):
    """One way to make a file visible."""

    def write(self, path: str, pieces: Pieces) -> None:
        """Give the file this content; a reader sees what was there before, or all of it."""
        ...

    def clean(self, root: str) -> int:
        """Remove what writers that are no longer alive have left; the number of files."""
        ...


def writer_for(files: Any) -> FileWriter:
    """The way that suits an fsspec filesystem."""
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if "file" in protocols:
        return LocalWriter()
    return UploadWriter(files) if protocols & WHOLE_AT_CLOSE else MoveWriter(files)


class LocalWriter:
    """Files of this machine. A writer holds a lock on its temporary file, so that a later run knows which are left."""

    def write(self, path: str, pieces: Pieces) -> None:
        """Write, flush, rename, flush the folder."""
        folder = os.path.dirname(path)
        _make_folder(folder)
        descriptor, temporary = _open_temporary(folder)
        try:
            with open(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                # A name that reaches the disk before the data would show an empty file after a power cut.
                os.fsync(descriptor)
                os.replace(temporary, path)
            _flush_folder(folder)
        except BaseException:
            # The error that matters is the first one; what can't be removed now is removed by `clean`.
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def clean(self, root: str) -> int:
        """Remove temporary files that nobody holds a lock on."""
        found = [p for pattern in (".*", "??/.*") for p in Path(root).glob(pattern) if _TEMPORARY.fullmatch(p.name)]
        return sum(_remove_unlocked(path) for path in found)


class UploadWriter:
    """Stores in which an object appears when its upload ends."""

    def __init__(self, files: Any):
        self._files = files

    def write(self, path: str, pieces: Pieces) -> None:
        """Upload; what fails on the way is given up."""
        if "memory" in self._files.protocol:
            self._files.pipe_file(path, b"".join(pieces))
        else:
            _write(self._files, path, pieces)

    def clean(self, root: str) -> int:
        """Nothing is left."""
        return 0


class MoveWriter:
    """Other stores: a temporary name, then a move. What a kill leaves stays, as nobody knows whose it is."""

    def __init__(self, files: Any):
        self._files = files

    def write(self, path: str, pieces: Pieces) -> None:
        """Write under a temporary name, then move."""
        folder = path.rpartition("/")[0]
        self._files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{uuid.uuid4().hex}"
        try:
            _write(self._files, temporary, pieces)
            self._files.mv(temporary, path)
        except BaseException:
            # The error that matters is the first one, and a store that has failed may fail with anything again.
            with suppress(Exception):
                self._files.rm_file(temporary)
            raise

    def clean(self, root: str) -> int:
        """Nothing is removed."""
        return 0


def _write(files: Any, path: str, pieces: Pieces) -> None:
    file = files.open(path, "wb")
    try:
        for piece in pieces:
            file.write(piece)
        file.close()
    except BaseException:
        # Leaving a `with`, or being collected, would close the file: that ends the upload and shows half an object.
        # Filesystems differ in what they have, so each is tried for itself; the first error is raised.
        with suppress(Exception):
            file.closed = True
        with suppress(Exception):
            file.discard()
        raise


def _open_temporary(folder: str) -> tuple[int, str]:
    while True:
        temporary = f"{folder}/.{uuid.uuid4().hex}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # a filesystem without locks: nobody can take the file for one that was left
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)  # somebody cleaned up between the two calls


def _remove_unlocked(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        flock(file, LOCK_EX | LOCK_NB)
        path.unlink()
        return True
    return False


def _make_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(folder)
    _flush_folder(parent)


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some filesystems in user space have no such thing
            raise
    finally:
        os.close(descriptor)
