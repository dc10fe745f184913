"""DSSE envelopes: a payload of a stated type with signatures over both, as in-toto and Sigstore read them.

Source: https://github.com/secure-systems-lab/dsse, protocol.md and envelope.md, version 1.0.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pol.commitments import canonical_json
from pol.errors import ProtocolError

_URL_SAFE = bytes.maketrans(b"-_", b"+/")


@dataclass(frozen=True)
class Signature:
    """A signature and the hint at its key, which decides nothing."""

    keyid: str
    sig: bytes


@dataclass(frozen=True)
class Envelope:
    """A payload, what it is, and signatures over both."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """The JSON envelope."""
        signatures = [{"keyid": s.keyid, "sig": base64.b64encode(s.sig).decode()} for s in self.signatures]
        payload = base64.b64encode(self.payload).decode()
        return json.dumps({"payload": payload, "payloadType": self.payload_type, "signatures": signatures}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Envelope:
        """The envelope in a JSON document; members that the specification doesn't know are ignored, as it asks."""
        document = canonical_json.parse(data, "the DSSE envelope")
        try:
            signatures = [Signature(_text(s.get("keyid") or ""), _bytes(s["sig"])) for s in document["signatures"]]
            return cls(_text(document["payloadType"]), _bytes(document["payload"]), tuple(signatures))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ProtocolError(f"not a DSSE envelope: {error!r}") from error

    def verify(self, keys: Sequence[Ed25519PublicKey], threshold: int = 1) -> None:
        """Check that at least ``threshold`` different keys have signed. Raises ProtocolError: fewer have."""
        message = pae(self.payload_type, self.payload)
        unique = {key.public_bytes_raw(): key for key in keys}.values()
        accepted = sum(any(_has_signed(key, s.sig, message) for s in self.signatures) for key in unique)
        if threshold < 1 or accepted < threshold:
            raise ProtocolError(f"the envelope is signed by {accepted} of the {len(keys)} keys, expected {threshold}")


def pae(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload_type: str, payload: bytes, key: Ed25519PrivateKey) -> Envelope:
    """The payload, signed; the key's id is the public key in hex."""
    keyid = key.public_key().public_bytes_raw().hex()
    return Envelope(payload_type, payload, (Signature(keyid, key.sign(pae(payload_type, payload))),))


def _has_signed(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ProtocolError(f"not a DSSE envelope: {value!r} isn't a string")
    return value


def _bytes(value: object) -> bytes:
    """Standard or URL-safe base64, padded: a reader has to accept either."""
    try:
        return base64.b64decode(_text(value).encode().translate(_URL_SAFE), validate=True)
    except binascii.Error as error:
        raise ProtocolError(f"not a DSSE envelope: {error}") from error
