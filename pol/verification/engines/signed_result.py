"""Results signed by the worker that vouches for them, and sealed to the verifier (docs/spec/replay_jobs.md#signed)."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pol.errors import ProtocolError
from pol.training.record import dsse_envelope
from pol.training.record.dsse_envelope import Envelope
from pol.training.storage.sealing import open_sealed, seal

PAYLOAD_TYPE = "application/vnd.pol.replay-result+json"


def sign_result(payload: bytes, key: Ed25519PrivateKey, recipient: bytes) -> bytes:
    """The envelope of a result, sealed to an X25519 key: another worker that could read it could copy it."""
    envelope = dsse_envelope.seal(PAYLOAD_TYPE, payload, key).encode()
    return b"".join(seal([envelope], [recipient])) if recipient else envelope


def opened_envelope(data: bytes, signer: bytes, recipient: X25519PrivateKey) -> Envelope:
    """The envelope that ``signer`` has signed; its payload is a result.

    Raises:
        OperationalError: sealed to another key.
    """
    envelope = Envelope.decode(open_sealed(data, recipient, "the result"))
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ProtocolError(f"the envelope holds {envelope.payload_type!r}, no result of a replay")
    envelope.verify([Ed25519PublicKey.from_public_bytes(signer)])
    return envelope
