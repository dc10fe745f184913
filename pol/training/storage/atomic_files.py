"""Atomic writes: a file of a store becomes visible whole, or not at all.

A folder of this machine: write under a temporary name, flush to the disk, rename, flush the folder. A store in which a
file appears when its upload ends (S3, the Hugging Face Hub, memory): write in place. Any other: write under a temporary
name and move.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from pol.errors import OperationalError

Pieces: TypeAlias = Iterable[bytes | bytearray | memoryview]

WHOLE_AT_CLOSE = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "ocilake", "tos", "hf", "memory"}
)
"""Protocols that show an object only when its upload has ended."""
CONDITIONAL = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"})
"""Those of them whose filesystem creates an object only if there is none of its name, in one request."""

PIECE = 1 << 24
"""Bytes that are uploaded at a time."""
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}")


class FileWriter(Protocol):
    """One way to write a file atomically."""

    def write(self, path: str, pieces: Pieces) -> None:
        """Give the file this content; a reader sees the old content or all of the new one."""
        ...

    def write_named(self, folder: str, pieces: Pieces, path: Callable[[], str]) -> None:
        """As `write`, of a file below ``folder`` whose path is known only after the last piece."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that isn't there; False, and nothing changes, if it is. Of several writers one gets True."""
        ...

    def clean(self, root: str) -> int:
        """Remove files that dead writers have left; their number."""
        ...


def writer_for(files: Any) -> FileWriter:
    """The writer for an fsspec filesystem."""
    protocols = _protocols(files)
    if "file" in protocols:
        return LocalWriter()
    return UploadWriter(files) if protocols & WHOLE_AT_CLOSE else MoveWriter(files)


def _protocols(files: Any) -> set[str]:
    return {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)


def _unconditional(files: Any) -> OperationalError:
    return OperationalError(
        f"a store of {'/'.join(sorted(_protocols(files)))} can't create a file only if there is none: use a folder, "
        "S3, Google Cloud Storage or Azure"
    )


class LocalWriter:
    """Files of this machine. A writer locks its temporary file, so that a later run recognizes abandoned ones."""

    def write(self, path: str, pieces: Pieces) -> None:
        """Write, flush, rename, flush the folder."""
        self.write_named(os.path.dirname(path), pieces, lambda: path)

    def write_named(self, folder: str, pieces: Pieces, path: Callable[[], str]) -> None:
        """Write in ``folder``, flush, rename, flush the folder of the path."""
        _make_folder(folder)
        descriptor, temporary = _open_temporary(folder)
        try:
            with open(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                # A name that reaches the disk before the data would show an empty file after a power cut.
                os.fsync(descriptor)
                final = path()
                _make_folder(os.path.dirname(final))
                os.replace(temporary, final)
            _flush_folder(os.path.dirname(final))
        except BaseException:
            # The first error is raised; `clean` removes the file if this fails.
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def create(self, path: str, data: bytes) -> bool:
        """Write and flush under a temporary name, link to the final one: that fails if there is one."""
        folder = os.path.dirname(path)
        _make_folder(folder)
        descriptor, temporary = _open_temporary(folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
                os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            # The first error is raised; `clean` removes the file if this fails.
            with suppress(OSError):
                os.unlink(temporary)
        _flush_folder(folder)
        return True

    def clean(self, root: str) -> int:
        """Remove temporary files that nobody holds a lock on."""
        found = [p for pattern in (".*", "??/.*") for p in Path(root).glob(pattern) if _TEMPORARY.fullmatch(p.name)]
        return sum(_remove_unlocked(path) for path in found)


class UploadWriter:
    """Stores in which an object appears when its upload ends."""

    def __init__(self, files: Any):
        self._files = files

    def write(self, path: str, pieces: Pieces) -> None:
        """Upload; a failed upload is discarded."""
        if "memory" in self._files.protocol:
            self._files.pipe_file(path, b"".join(pieces))
        else:
            _write(self._files, path, pieces)

    def write_named(self, folder: str, pieces: Pieces, path: Callable[[], str]) -> None:
        """Collect the pieces in a temporary file of this machine, then upload."""
        with tempfile.TemporaryFile() as file:
            for piece in pieces:
                file.write(piece)
            file.seek(0)
            self.write(path(), iter(lambda: file.read(PIECE), b""))

    def create(self, path: str, data: bytes) -> bool:
        """Upload on the condition that there is none."""
        if not CONDITIONAL & _protocols(self._files):
            raise _unconditional(self._files)
        try:
            self._files.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True

    def clean(self, root: str) -> int:
        """Nothing is left."""
        return 0


class MoveWriter:
    """Other stores: a temporary name, then a move. Files that a kill leaves stay, as their owner is unknown."""

    def __init__(self, files: Any):
        self._files = files

    def write(self, path: str, pieces: Pieces) -> None:
        """Write under a temporary name, then move."""
        self.write_named(path.rpartition("/")[0], pieces, lambda: path)

    def write_named(self, folder: str, pieces: Pieces, path: Callable[[], str]) -> None:
        """As `write`; the temporary name is in ``folder``."""
        self._files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{uuid.uuid4().hex}"
        try:
            _write(self._files, temporary, pieces)
            final = path()
            self._files.makedirs(final.rpartition("/")[0], exist_ok=True)
            self._files.mv(temporary, final)
        except BaseException:
            # The first error is raised; a store that has failed may fail with anything again.
            with suppress(Exception):
                self._files.rm_file(temporary)
            raise

    def create(self, path: str, data: bytes) -> bool:
        """A move may replace."""
        raise _unconditional(self._files)

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
        # Leaving a `with`, or garbage collection, would close the file, end the upload and show half an object.
        # Filesystems differ in how they discard, so each way is tried; the first error is raised.
        with suppress(Exception):
            file.closed = True
        with suppress(Exception):
            file.discard()
        raise


def _open_temporary(folder: str) -> tuple[int, str]:
    while True:
        temporary = f"{folder}/.{uuid.uuid4().hex}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # a filesystem without locks: `clean` can't lock the file either, so it leaves it
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)  # another process cleaned up between the two calls


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
        if error.errno != errno.EINVAL:  # some filesystems in user space can't flush a folder
            raise
    finally:
        os.close(descriptor)
