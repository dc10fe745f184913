"""Content-addressed objects: the name of an object is the keccak-256 of its bytes, in hex."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import fsspec

from pol.commitments.keccak import Keccak256, keccak256
from pol.errors import OperationalError, PolError, ProtocolError, reason_of
from pol.training.storage import bounded_read
from pol.training.storage.atomic_files import WHOLE_AT_CLOSE, Pieces, writer_for
from pol.training.storage.http_files import DEFAULT_PATIENCE, HttpFiles, HttpPatience, TooLongError

LIMIT = 1 << 34
PIECE = 1 << 24
"""Bytes of an object that are requested over HTTP at a time."""
AT_ONCE = 1 << 30
"""Bytes that a read without a size gives at most."""
INNER = frozenset({"fo", "fs", "remote_protocol", "target_protocol"})
"""Options of fsspec that name a filesystem to stand on."""
ANY = frozenset({"generic", "reference"})
"""Protocols that stand on any other without an option."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[0-9a-f]{64}\.[a-z]{1,16}")
_MUTABLE = re.compile(r"[a-z]{1,32}(-[0-9a-f]{64})?\.json")


class CorruptObjectError(ProtocolError):
    """A store gave other bytes than the requested object.

    The fault lies with the store or the network, not with the author of the digest: a verifier treats the object as
    missing.
    """


class ReadableFile(Protocol):
    """A file open for reading; fsspec's and Python's are."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end."""
        ...


class SeekableFile(ReadableFile, Protocol):
    """A file open for reading at any position."""

    def seek(self, position: int, /) -> object:
        """Go to a position, counted from the start."""
        ...


def read_up_to(file: ReadableFile, count: int) -> bytes:
    """``count`` bytes, fewer only at the end; a file may give them in parts."""
    found = file.read(count)
    while len(found) < count and (more := file.read(count - len(found))):
        found += more
    return found


class OpenFile:
    """A file of a store, open for reading; failures are OperationalErrors that name the file."""

    def __init__(self, file: Any, size: int, action: str):
        self.size = size
        self._file, self._position = file, 0
        self._action = action

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end; the whole rest if ``size`` is negative."""
        if size < 0:
            size = max(0, self.size - self._position)
            if size > AT_ONCE:
                raise OperationalError(
                    f"can't {self._action} at once: the store states {size} more bytes, and without a size at most "
                    f"{AT_ONCE} are read; read it in parts, with read(SIZE)"
                )
        with _operational(self._action):
            found = bytes(self._file.read(size))
            self._position += len(found)
            return found

    def seek(self, position: int) -> None:
        """Go to a position, counted from the start."""
        with _operational(self._action):
            self._file.seek(position)
            self._position = position


class Store:
    """Objects below one fsspec URL (``file:///srv/pol``, ``memory://task``, ``s3://bucket/prefix``).

    A reader never sees half of a file, even after a writer was killed (`pol.training.storage.atomic_files`). Every
    object is hashed before it is used. ``options`` are those of the fsspec filesystem: an endpoint, a token.
    ``patience`` bounds slow servers.

    Raises OperationalError if no filesystem serves the URL, if one stands on another (``simplecache::http://``), or for
    an option that a store over HTTP doesn't know.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None, patience: HttpPatience = DEFAULT_PATIENCE):
        self.url, self.options, self.patience = url, dict(options or {}), patience
        _require_single(url, self.options)
        with _operational(f"open the store {url}"):
            # A cached listing would hide what another process has published since. Not every filesystem takes the
            # option: some hand unknown ones to a library that refuses them.
            remote = url.partition("://")[0] in WHOLE_AT_CLOSE | {"http", "https"}
            listings = {"use_listings_cache": False} if remote else {}
            try:
                self._files, root = fsspec.core.url_to_fs(url, **listings | self.options)
            except ImportError as error:
                cure = "pip install 'proof-of-learning[s3]'" if url.startswith("s3") else "install it with pip"
                raise OperationalError(f"can't open the store {url}: {error}: {cure}") from error
            except ValueError as error:
                known = "a folder, file://, https:// or s3://"
                raise OperationalError(f"can't open the store {url}: {reason_of(error)}; name {known}") from error
            if self._files.protocol == ("file", "local") and os.path.isfile(str(root)):
                raise OperationalError(f"can't open the store {url}: it is a file; name a folder")
            self._writer = writer_for(self._files)
        self._root = str(root).rstrip("/")
        is_http = url.partition("://")[0] in {"http", "https"}
        self._http = HttpFiles(self.options, patience) if is_http else None

    def put(self, data: bytes | bytearray) -> str:
        """Store ``data`` and return its digest; storing it again changes nothing."""
        digest = keccak256(data).hex()
        final = self._path(digest)
        with _operational(f"write object {digest} to {self.url}"):
            if self._exists(final) and self._holds(digest, len(data)):
                return digest
            self._writer.write(final, [data])
        return digest

    def put_pieces(self, pieces: Pieces) -> str:
        """As `put`, of bytes that come piece by piece: no more than one piece is in memory."""
        so_far = Keccak256()

        def hashed() -> Iterator[bytes | bytearray | memoryview]:
            for piece in pieces:
                so_far.update(piece)
                yield piece

        with _operational(f"write an object to {self.url}"):
            self._writer.write_named(self._root, hashed(), lambda: self._path(so_far.digest().hex()))
        return so_far.digest().hex()

    def copy(self, source: "Store", digest: str, *, limit: int = LIMIT) -> None:
        """Store an object of another store as it is there, checked on the way.

        Raises:
            ProtocolError, CorruptObjectError, OperationalError: as `get` of the source, or this store failed.
        """
        with _operational(f"write object {digest} to {self.url}"):
            self._writer.write(self._path(digest), Store.pieces(source, digest, limit=limit))

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The bytes whose keccak-256 is ``digest``.

        Raises:
            ProtocolError: the digest is malformed.
            CorruptObjectError: the stored bytes don't hash to it, or are more than ``limit``.
            OperationalError: the object isn't there or can't be read.
        """
        path = self._path(digest)
        with _operational(f"read object {digest} from {self.url}"):
            try:
                data = self._content(path, limit)
            except TooLongError as error:
                raise _too_long(digest, self.url, limit) from error
        _require_digest(digest, keccak256(data).hex(), self.url)
        return data

    @property
    def keeps(self) -> bool:
        """Whether all that was read can be read again, whatever becomes of the files of others."""
        return False

    def pieces(self, digest: str, *, limit: int = LIMIT) -> Iterator[bytes]:
        """The bytes whose keccak-256 is ``digest``, piece by piece; only after the last one are they known to be those.

        Raises:
            ProtocolError, CorruptObjectError, OperationalError: as `get`.
        """
        path, so_far = self._path(digest), Keccak256()
        with _operational(f"read object {digest} from {self.url}"):
            try:
                for piece in self._pieces(path, limit):
                    so_far.update(piece)
                    yield piece
            except TooLongError as error:
                raise _too_long(digest, self.url, limit) from error
        _require_digest(digest, so_far.digest().hex(), self.url)

    def require(self, digest: str, *, limit: int = LIMIT) -> None:
        """Check that the bytes of an object hash to its digest, in the memory of a piece.

        Raises:
            ProtocolError, CorruptObjectError, OperationalError: as `get`.
        """
        for _ in Store.pieces(self, digest, limit=limit):
            pass

    def put_public(self, data: bytes) -> str:
        """As `put`; a store that seals (`pol.training.storage.sealing`) leaves this readable for everybody."""
        return Store.put(self, data)

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `get`, for objects stored by `put_public`."""
        return Store.get(self, digest, limit=limit)

    def exists(self, digest: str) -> bool:
        """Whether an object of this name is stored; says nothing about its bytes."""
        path = self._path(digest)
        with _operational(f"look for object {digest} in {self.url}"):
            return self._exists(path)

    def put_file(self, name: str, pieces: Pieces) -> None:
        """Store a file under the name of its content, piece by piece, unless it is there already.

        ``name`` is a root in hex with an ending, such as ``<root>.safetensors``: equal content has an equal name, and
        a reader checks the content against it.
        """
        path = self._file_path(name)
        with _operational(f"write file {name} to {self.url}"):
            if not self._exists(path):
                self._writer.write(path, pieces)

    @contextmanager
    def open_file(self, name: str) -> Iterator[OpenFile]:
        """An object or a file for reading; its content is still to be checked against its name.

        Raises:
            OperationalError: the file isn't there or can't be read.
        """
        action = f"read file {name} from {self.url}"
        path = self._file_path(name) if "." in name else self._path(name)
        with _operational(action):
            file = self._files.open(path, "rb") if self._http is None else self._http.open(path)
        try:
            with _operational(action):
                size = self._size(path)
            yield OpenFile(file, size, action)
        finally:
            file.close()

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content of a file that may change; readers see the old or the new content."""
        with _operational(f"write {name} to {self.url}"):
            self._writer.write(f"{self._root}/{_mutable(name)}", [data])

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that may change unless it is there; of several writers at the same time one gets True.

        Raises:
            OperationalError: the store failed, or can't do both in one: folders, S3, Google's and Azure's stores can.
        """
        with _operational(f"create {name} in {self.url}"):
            return self._writer.create(f"{self._root}/{_mutable(name)}", data)

    def remove(self, name: str) -> None:
        """Remove an object that nobody needs, or a file that may change, if it is there."""
        path = self._path(name) if _DIGEST.fullmatch(name) else f"{self._root}/{_mutable(name)}"
        with _operational(f"remove {name} from {self.url}"), suppress(FileNotFoundError):
            self._files.rm_file(path)

    def read(self, name: str, *, limit: int = LIMIT) -> bytes:
        """The content of a file written by `replace` or `create`.

        Raises:
            ProtocolError: longer than ``limit`` bytes.
            OperationalError: the file isn't there or can't be read.
        """
        path = f"{self._root}/{_mutable(name)}"
        with _operational(f"read {name} from {self.url}"):
            try:
                return self._content(path, limit)
            except TooLongError as error:
                raise ProtocolError(f"{name} has more than the {limit} bytes expected at most") from error

    def holds(self, name: str) -> bool:
        """Whether a file written by `replace` or `create` is there."""
        with _operational(f"look for {name} in {self.url}"):
            return self._exists(f"{self._root}/{_mutable(name)}")

    def clean(self) -> int:
        """Remove temporary files that killed writers have left; their number."""
        with _operational(f"clean {self.url}"):
            return self._writer.clean(self._root)

    def _exists(self, path: str) -> bool:
        if self._http is not None:
            return self._http.exists(path)
        return bool(bounded_read.in_time(self._files, lambda: self._files.exists(path)))

    def _holds(self, digest: str, size: int) -> bool:
        try:
            Store.require(self, digest, limit=size)
        except CorruptObjectError:
            return False
        return True

    def _content(self, path: str, limit: int) -> bytes:
        """All bytes of a file. Raises TooLongError for more than ``limit``, of which no more are read."""
        if self._http is not None:
            return self._http.read(path, limit)
        return bounded_read.read(self._files, path, self._size_within(path, limit), limit, self.patience)

    def _pieces(self, path: str, limit: int) -> Iterator[bytes]:
        """As `_content`, piece by piece."""
        size = self._size_within(path, limit)
        if self._http is None:
            yield from bounded_read.pieces(self._files, path, limit, self.patience)
            return
        file = self._http.open(path)
        yield from (file.read(min(PIECE, size - first)) for first in range(0, size, PIECE))

    def _size_within(self, path: str, limit: int) -> int:
        size = self._size(path)
        if size > limit:
            raise TooLongError(f"{path} has {size} bytes, {limit} are expected at most")
        return size

    def _size(self, path: str) -> int:
        if self._http is not None:
            return self._http.size(path)
        size = bounded_read.in_time(self._files, lambda: self._files.size(path))
        if size is None:
            raise OSError("the server doesn't say how long the file is")
        return int(size)

    def _file_path(self, name: str) -> str:
        if not _FILE.fullmatch(name):
            raise ProtocolError(f"{name!r} isn't the name of a file: expected a root in hexadecimal and an ending")
        return f"{self._root}/{name[:2]}/{name}"

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise ProtocolError(f"{digest!r} isn't a digest: expected 64 lower-case hexadecimal digits")
        return f"{self._root}/{digest[:2]}/{digest}"


def _mutable(name: str) -> str:
    if not _MUTABLE.fullmatch(name):
        raise ProtocolError(f"{name!r} isn't the name of a file that can change")
    return name


def _too_long(digest: str, url: str, limit: int) -> CorruptObjectError:
    """Not read to its end, so not hashed: the store may have put any file there."""
    problem = f"object {digest} in {url} has more than the {limit} bytes expected at most"
    return CorruptObjectError(f"{problem}; fetch another copy")


def _require_digest(digest: str, actual: str, url: str) -> None:
    if actual != digest:
        raise CorruptObjectError(f"object {digest} in {url} is corrupt: its bytes hash to {actual}; fetch another copy")


def _require_single(url: str, options: Mapping[str, Any]) -> None:
    if "::" in url or url.partition("://")[0] in ANY or options.keys() & INNER:
        # The outer filesystem would read the inner one whole, without our bounds.
        raise OperationalError(
            f"{url} is one filesystem on another, and the outer one reads without bounds: name the inner URL as the "
            "store, such as https://host/path"
        )


@contextmanager
def _operational(action: str) -> Iterator[None]:
    """Turn failures of storage into OperationalError: a disk that fails proves nothing about anyone."""
    try:
        yield
    except PolError:
        raise
    except Exception as error:  # filesystems raise what their libraries raise
        raise OperationalError(f"can't {action}: {reason_of(error)}") from error
