"""Content-addressed objects: the name of an object is the keccak-256 of its bytes, in hex."""

import os
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import fsspec

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

LIMIT = 1 << 34
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[0-9a-f]{64}\.[a-z]{1,16}")
_MUTABLE = re.compile(r"[a-z]{1,32}\.json")


class CorruptObjectError(ProtocolError):
    """A store handed out bytes that aren't the object asked for.

    It says something about the store or the way to it, and nothing about who committed to the digest: a verifier treats
    it like an object that is missing.
    """


class Store:
    """Objects below one fsspec URL (``file:///srv/pol``, ``memory://task``, ``s3://bucket/prefix``).

    An object is written under a temporary name and moved, so a reader never sees half of one; whatever a reader gets is
    hashed before it is used.
    """

    def __init__(self, url: str):
        self.url = url
        with _operational(f"open the store {url}"):
            self._files, root = fsspec.core.url_to_fs(url)
        self._root = str(root).rstrip("/")

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its digest; storing it again changes nothing."""
        digest = keccak256(data).hex()
        final = self._path(digest)
        with _operational(f"write object {digest} to {self.url}"):
            if self._files.exists(final) and bytes(self._files.cat_file(final)) == data:
                return digest
            self._create(final, [data])
        return digest

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The bytes whose keccak-256 is ``digest``.

        Raises:
            ProtocolError: the digest is malformed, or the object is longer than ``limit`` bytes.
            CorruptObjectError: the stored bytes don't hash to it.
            OperationalError: the object isn't there or can't be read.
        """
        path = self._path(digest)
        with _operational(f"read object {digest} from {self.url}"):
            size = self._files.size(path)
            if size is not None and size > limit:
                raise ProtocolError(f"object {digest} has {size} bytes, more than the {limit} expected at most")
            data = bytes(self._files.cat_file(path))
        actual = keccak256(data).hex()
        if actual != digest:
            raise CorruptObjectError(
                f"object {digest} in {self.url} is corrupt: its bytes hash to {actual}; fetch another copy"
            )
        return data

    def exists(self, digest: str) -> bool:
        """Whether an object of this name is stored; says nothing about its bytes."""
        path = self._path(digest)
        with _operational(f"look for object {digest} in {self.url}"):
            return bool(self._files.exists(path))

    def put_file(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        """Store a file under the name of its content, piece by piece; one that is there already is not written again.

        ``name`` is a root in hex with an ending, such as ``<root>.safetensors``: equal content has an equal name, and
        a reader checks the content against it.
        """
        path = self._file_path(name)
        with _operational(f"write file {name} to {self.url}"):
            if not self._files.exists(path):
                self._create(path, pieces)

    @contextmanager
    def open_file(self, name: str) -> Iterator[BinaryIO]:
        """A file for reading; its content is still to be checked against its name.

        Raises:
            OperationalError: the file isn't there or can't be read.
        """
        with _operational(f"read file {name} from {self.url}"), self._files.open(self._file_path(name), "rb") as file:
            yield file

    def replace(self, name: str, data: bytes) -> None:
        """Make ``data`` the content of the one file in the store that changes; readers see the old or the new one."""
        with _operational(f"write {name} to {self.url}"):
            self._create(f"{self._root}/{_mutable(name)}", [data])

    def read(self, name: str, *, limit: int = LIMIT) -> bytes:
        """The content of a file written by `replace`.

        Raises:
            ProtocolError: longer than ``limit`` bytes.
            OperationalError: the file isn't there or can't be read.
        """
        path = f"{self._root}/{_mutable(name)}"
        with _operational(f"read {name} from {self.url}"):
            size = self._files.size(path)
            if size is not None and size > limit:
                raise ProtocolError(f"{name} has {size} bytes, more than the {limit} expected at most")
            return bytes(self._files.cat_file(path))

    def holds(self, name: str) -> bool:
        """Whether a file written by `replace` is there."""
        with _operational(f"look for {name} in {self.url}"):
            return bool(self._files.exists(f"{self._root}/{_mutable(name)}"))

    def _create(self, final: str, pieces: Iterable[bytes | memoryview]) -> None:
        folder = final.rpartition("/")[0]
        self._files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{uuid.uuid4().hex}"
        try:
            self._write(temporary, pieces)
            self._files.mv(temporary, final)
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(temporary)
            raise

    def _file_path(self, name: str) -> str:
        if not _FILE.fullmatch(name):
            raise ProtocolError(f"{name!r} isn't the name of a file: expected a root in hexadecimal and an ending")
        return f"{self._root}/{name[:2]}/{name}"

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise ProtocolError(f"{digest!r} isn't a digest: expected 64 lower-case hexadecimal digits")
        return f"{self._root}/{digest[:2]}/{digest}"

    def _write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        with self._files.open(path, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            if "file" in self._files.protocol:
                # A move that reaches the disk before the data would leave an empty object after a power cut.
                os.fsync(file.fileno())


def _mutable(name: str) -> str:
    if not _MUTABLE.fullmatch(name):
        raise ProtocolError(f"{name!r} isn't the name of a file that can change")
    return name


@contextmanager
def _operational(action: str) -> Iterator[None]:
    """Turn trouble with storage into OperationalError: a disk that fails proves nothing about anyone."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise OperationalError(f"can't {action}: {error}") from error
