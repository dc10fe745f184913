"""Keys of workers: secp256k1 signatures that a contract can check (docs/spec/rounds.md, "Keys")."""

from __future__ import annotations

import re

from eth_keys.datatypes import PrivateKey, Signature
from eth_keys.exceptions import BadSignature
from eth_keys.main import KeyAPI
from eth_utils.exceptions import ValidationError

from pol.errors import ProtocolError

SIGNATURE_SIZE = 65
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_NAME = re.compile(r"0x[0-9a-f]{40}")
_KEYS = KeyAPI()


class WorkerKey:
    """A secret key of 32 bytes, and the name of its worker. Raises ProtocolError: the bytes are no key."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32 or not 0 < int.from_bytes(secret, "big") < _ORDER:
            raise ProtocolError("this is no key: a worker's key is 32 random bytes, secrets.token_bytes(32)")
        self._key: PrivateKey = _KEYS.PrivateKey(secret)
        self.name: str = self._key.public_key.to_address()

    def sign(self, digest: bytes) -> bytes:
        """The signature of a digest: ``r || s || v``."""
        signature: Signature = self._key.sign_msg_hash(digest)
        data: bytes = signature.to_bytes()
        return data[:64] + bytes([27 + data[64]])


def signer_of(digest: bytes, signature: bytes) -> str:
    """The name of the worker that has signed a digest."""
    wrong = ProtocolError("the signature is nobody's: it has to be r, s (at most half of the order) and v (27 or 28)")
    if len(signature) != SIGNATURE_SIZE or signature[64] not in (27, 28):
        raise wrong
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if not 0 < r < _ORDER or not 0 < s <= _ORDER // 2:
        raise wrong
    try:
        signed = _KEYS.Signature(vrs=(signature[64] - 27, r, s))
        found: str = signed.recover_public_key_from_msg_hash(digest).to_address()
    except (BadSignature, ValidationError) as error:
        raise wrong from error
    return found


def require_signed(digest: bytes, signature: bytes, worker: str, what: str) -> None:
    """Check that a worker has signed a digest. Raises ProtocolError: somebody else has, or nobody."""
    found = signer_of(digest, signature)
    if found != worker:
        raise ProtocolError(f"{what} is signed by {found}, not by {worker}: leave it out")


def is_signed_by(digest: bytes, signature: bytes, worker: str) -> bool:
    """Whether a worker has signed a digest."""
    try:
        return signer_of(digest, signature) == worker
    except ProtocolError:
        return False


def require_name(text: str, what: str) -> str:
    """The text, if it is a worker's name. Raises ProtocolError: it isn't."""
    if not _NAME.fullmatch(text):
        raise ProtocolError(f"{what} is {text!r}: a worker's name is an address in lower case, 0x and 40 digits")
    return text
