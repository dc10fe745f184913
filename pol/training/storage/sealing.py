"""Checkpoints that only chosen verifiers can open (docs/spec/complete_state.md, "Sealed checkpoints").

Commitments stay over the plaintext: without a key one sees a record of roots, and can check every claim that needs no
data. The construction is that of age (https://age-encryption.org/v1): a fresh key for each file, wrapped to each
recipient with X25519 and HKDF-SHA256, and segments under ChaCha20-Poly1305 whose nonces count and mark the last.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.atomic_files import Pieces
from pol.training.storage.store import LIMIT, OpenFile, ReadableFile, SeekableFile, Store, read_up_to

MAGIC = b"pol/sealed/1"
SEGMENT = 1 << 16
MAX_RECIPIENTS = 64
ENDING = ".sealed"
_TAG, _KEY = 16, 32


def seal(pieces: Pieces, recipients: Sequence[bytes], entropy: Callable[[int], bytes] = os.urandom) -> Iterator[bytes]:
    """The sealed file of a plaintext, piece by piece; ``recipients`` are X25519 public keys of 32 bytes."""
    header, key = _seal_header(recipients, entropy)
    yield header
    cipher, counter, waiting = ChaCha20Poly1305(key), 0, bytearray()
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for first in range(0, len(view), SEGMENT):
            waiting += view[first : first + SEGMENT]
            # One segment stays back: the last one is marked, and only the end says which it is.
            while len(waiting) > SEGMENT:
                yield cipher.encrypt(_nonce(counter, last=False), bytes(waiting[:SEGMENT]), None)
                del waiting[:SEGMENT]
                counter += 1
    yield cipher.encrypt(_nonce(counter, last=True), bytes(waiting), None)


def is_sealed(data: bytes) -> bool:
    """Whether a file says that it is sealed."""
    return data.startswith(MAGIC)


class SealedFile:
    """The plaintext of a sealed file; a segment is authenticated before any of it is given out.

    Raises:
        OperationalError: not sealed to this key.
    """

    def __init__(self, file: SeekableFile, key: X25519PrivateKey, what: str):
        self._file, self._what = file, what
        header, fresh = _open_header(file, key, what)
        self._begin, self._cipher = len(header), ChaCha20Poly1305(fresh)
        self._counter, self._ready = 0, bytearray()
        self._ahead: bytes | None = read_up_to(file, SEGMENT + _TAG)
        self._position = 0

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end; all that is left if it is negative."""
        while self._ahead is not None and (size < 0 or len(self._ready) < size):
            self._ready += self._segment()
        count = len(self._ready) if size < 0 else size
        found = bytes(self._ready[:count])
        del self._ready[:count]
        self._position += len(found)
        return found

    def seek(self, position: int) -> None:
        """Go to a position, counted from the start. One past the end is found when it is read."""
        if position == self._position:
            return
        self._counter, skipped = divmod(position, SEGMENT)
        self._file.seek(self._begin + self._counter * (SEGMENT + _TAG))
        self._ready.clear()
        self._ahead = read_up_to(self._file, SEGMENT + _TAG)
        self._position = position - skipped
        self.read(skipped)

    def size_within(self, size: int) -> int:
        """Bytes of the plaintext in a sealed file of this size."""
        segments = size - self._begin
        return segments - -(-segments // (SEGMENT + _TAG)) * _TAG

    def _segment(self) -> bytes:
        segment, following = self._ahead, b""
        assert segment is not None
        if len(segment) == SEGMENT + _TAG:
            following = read_up_to(self._file, SEGMENT + _TAG)
        last = not following
        try:
            plain = self._cipher.decrypt(_nonce(self._counter, last), segment, None)
        except InvalidTag as error:
            raise ProtocolError(
                f"segment {self._counter} of {self._what} was changed, or isn't at its place: take another copy"
            ) from error
        if not plain and self._counter:
            raise ProtocolError(f"{self._what} ends with an empty segment")
        self._ahead = None if last else following
        self._counter += 1
        return plain


def open_sealed(data: bytes, key: X25519PrivateKey, what: str) -> bytes:
    """The plaintext of a sealed file in memory."""
    return SealedFile(io.BytesIO(data), key, what).read()


def sealed_size(plain: int, recipients: int) -> int:
    """Bytes of the sealed file for a plaintext of this size."""
    return len(MAGIC) + 1 + _KEY + recipients * (_KEY + _TAG) + plain + max(1, -(-plain // SEGMENT)) * _TAG


class SealedStore(Store):
    """A store whose objects and files are sealed to recipients; the digest of an object is that of its sealed bytes.

    ``key`` opens what is read; writing needs none. Files that change, such as `record.json`, stay readable for
    everybody.
    """

    def __init__(
        self,
        store: Store,
        recipients: Sequence[bytes] = (),
        key: X25519PrivateKey | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
    ):
        super().__init__(store.url, store.options, store.patience)
        self._key, self._entropy = key, entropy
        own = [] if key is None else [key.public_key().public_bytes_raw()]
        self._recipients = tuple(dict.fromkeys([*recipients, *own]))

    def put(self, data: bytes | bytearray) -> str:
        """Seal and store; the digest of the sealed bytes. Each call stores a new object under a fresh key."""
        return self.put_pieces([data])

    def put_pieces(self, pieces: Pieces) -> str:
        """As `put`, of bytes that come piece by piece."""
        return super().put_pieces(seal(pieces, self._recipients, self._entropy))

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The plaintext of an object, with the digest of its stored bytes checked.

        An object that was never sealed, such as a document of a public base, is returned as it is.

        Raises:
            ProtocolError: malformed, or too long.
            CorruptObjectError: the stored bytes don't hash to it.
            OperationalError: not sealed to this store's key, not there, or it can't be read.
        """
        stored = super().get(digest, limit=sealed_size(limit, MAX_RECIPIENTS))
        if not is_sealed(stored) and len(stored) <= limit:
            return stored
        return open_sealed(stored, self._require_key(), f"object {digest}")

    def pieces(self, digest: str, *, limit: int = LIMIT) -> Iterator[bytes]:
        """As `get`, in one piece."""
        yield self.get(digest, limit=limit)

    def require(self, digest: str, *, limit: int = LIMIT) -> None:
        """As `Store.require`, of the sealed bytes; ``limit`` is for the plaintext."""
        super().require(digest, limit=sealed_size(limit, MAX_RECIPIENTS))

    def put_file(self, name: str, pieces: Pieces) -> None:
        """Seal and store a file, under another ending."""
        super().put_file(hidden_name(name), seal(pieces, self._recipients, self._entropy))

    @contextmanager
    def open_file(self, name: str) -> Iterator[OpenFile]:
        """The plaintext of a file.

        Raises:
            ProtocolError: it was changed.
            OperationalError: not sealed to this store's key, not there, or it can't be read.
        """
        with super().open_file(hidden_name(name)) as file:
            opened = SealedFile(file, self._require_key(), f"file {name}")
            yield OpenFile(opened, opened.size_within(file.size), f"read file {name} from {self.url}")

    def _require_key(self) -> X25519PrivateKey:
        if self._key is None:
            raise OperationalError(f"the checkpoints in {self.url} are sealed: give a key to open them with")
        return self._key


def hidden_name(name: str) -> str:
    """The name under which a file is stored when it is sealed; an object keeps its digest."""
    return name.partition(".")[0] + ENDING if "." in name else name


def _seal_header(recipients: Sequence[bytes], entropy: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    """Everything before the segments, and their key."""
    if not 1 <= len(recipients) <= MAX_RECIPIENTS:
        raise ProtocolError(f"a checkpoint is sealed to 1 to {MAX_RECIPIENTS} keys, {len(recipients)} were given")
    fresh, ephemeral = entropy(_KEY), X25519PrivateKey.from_private_bytes(entropy(_KEY))
    public = ephemeral.public_key().public_bytes_raw()
    header = MAGIC + bytes([len(recipients)]) + public
    for recipient in recipients:
        try:
            shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(recipient))
        except ValueError as error:
            raise ProtocolError(f"{recipient.hex()} isn't an X25519 public key that can be sealed to") from error
        header += ChaCha20Poly1305(_wrapping(shared, public, recipient)).encrypt(bytes(12), fresh, None)
    return header, _derive(fresh, None, MAGIC + b"/data" + header)


def _open_header(file: ReadableFile, key: X25519PrivateKey, what: str) -> tuple[bytes, bytes]:
    """The header, and the key of the segments."""
    start = read_up_to(file, len(MAGIC) + 1 + _KEY)
    count = start[len(MAGIC)] if len(start) == len(MAGIC) + 1 + _KEY else 0
    wraps = read_up_to(file, count * (_KEY + _TAG))
    if not start.startswith(MAGIC) or not 1 <= count <= MAX_RECIPIENTS or len(wraps) != count * (_KEY + _TAG):
        raise ProtocolError(f"{what} isn't sealed in this form, or is truncated")
    public, own = start[-_KEY:], key.public_key().public_bytes_raw()
    try:
        wrapping = _wrapping(key.exchange(X25519PublicKey.from_public_bytes(public)), public, own)
    except ValueError as error:
        raise ProtocolError(f"{what} holds no X25519 key") from error
    for first in range(0, len(wraps), _KEY + _TAG):
        with suppress(InvalidTag):  # sealed to another recipient: the next one may be ours
            fresh = ChaCha20Poly1305(wrapping).decrypt(bytes(12), wraps[first : first + _KEY + _TAG], None)
            return start + wraps, _derive(fresh, None, MAGIC + b"/data" + start + wraps)
    raise OperationalError(f"{what} isn't sealed to the key {own.hex()}: ask its trainer to add it")


def _wrapping(shared: bytes, ephemeral: bytes, recipient: bytes) -> bytes:
    return _derive(shared, ephemeral + recipient, MAGIC + b"/wrap")


def _derive(secret: bytes, salt: bytes | None, info: bytes) -> bytes:
    return HKDF(SHA256(), _KEY, salt, info).derive(secret)


def _nonce(counter: int, last: bool) -> bytes:
    return counter.to_bytes(11, "big") + bytes([last])
