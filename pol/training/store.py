"""Content-addressed objects: the name of an object is the keccak-256 of its bytes, in hex."""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import fsspec

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

LIMIT = 1 << 34
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
            folder = final.rpartition("/")[0]
            self._files.makedirs(folder, exist_ok=True)
            temporary = f"{folder}/.{uuid.uuid4().hex}"
            try:
                self._write(temporary, data)
                self._files.mv(temporary, final)
            except BaseException:
                with suppress(Exception):
                    self._files.rm_file(temporary)
                raise
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

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise ProtocolError(f"{digest!r} isn't a digest: expected 64 lower-case hexadecimal digits")
        return f"{self._root}/{digest[:2]}/{digest}"

    def _write(self, path: str, data: bytes) -> None:
        with self._files.open(path, "wb") as file:
            file.write(data)
            file.flush()
            if "file" in self._files.protocol:
                # A move that reaches the disk before the data would leave an empty object after a power cut.
                os.fsync(file.fileno())


@contextmanager
def _operational(action: str) -> Iterator[None]:
    """Turn trouble with storage into OperationalError: a disk that fails proves nothing about anyone."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise OperationalError(f"can't {action}: {error}") from error
