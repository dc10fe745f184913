"""Signed profiles: an in-toto statement about the document, in a DSSE envelope signed with Ed25519.

The chain records who posted a profile; the envelope tells who measured it without a chain. Sources: those of
`pol.training.record.attestation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.training.record import dsse_envelope
from pol.training.record.attestation import PAYLOAD_TYPE, STATEMENT_TYPE, Statement
from pol.verification.profile.profile_document import Profile

PREDICATE_TYPE = "urn:pol:profile:v2"


def sign(profile: Profile, key: Ed25519PrivateKey) -> bytes:
    """The signed envelope. Raises UnsupportedError: the profile has no thresholds, so there is no document to sign."""
    return dsse_envelope.seal(PAYLOAD_TYPE, canonical_json.encode(statement(profile)), key).encode()


def statement(profile: Profile) -> Statement:
    """The signed statement: the document by its name in a store and by its SHA-256, and its task."""
    document = profile.encode()
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": profile.digest.hex(), "digest": {"sha256": hashlib.sha256(document).hexdigest()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"task": profile.task, "thresholds": [str(threshold) for threshold in profile.thresholds]},
    }


def verify(envelope: bytes, profile: Profile, keys: Sequence[Ed25519PublicKey], threshold: int = 1) -> None:
    """Check that at least ``threshold`` of these keys have signed this profile.

    Raises:
        ProtocolError: fewer have, or the envelope is about something else.
    """
    opened = dsse_envelope.Envelope.decode(envelope)
    opened.verify(keys, threshold)
    if (opened.payload_type, opened.payload) != (PAYLOAD_TYPE, canonical_json.encode(statement(profile))):
        raise ProtocolError(f"the envelope is not about profile {profile.digest.hex()} of task {profile.task}")
