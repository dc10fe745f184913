"""A signature over a profile is about this document and task, and no other."""

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from digits_training import profiled
from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.training.record import dsse_envelope
from pol.verification.profile.profile_signature import sign, statement, verify

KEY, OTHER = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32), Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)


def test_a_signed_profile() -> None:
    envelope = sign(profiled(), KEY)
    assert envelope == sign(profiled(), KEY)
    verify(envelope, profiled(), [KEY.public_key()])
    with pytest.raises(ProtocolError, match="signed by 0"):
        verify(envelope, profiled(), [OTHER.public_key()])
    with pytest.raises(ProtocolError, match="signed by 1"):
        verify(envelope, profiled(), [KEY.public_key(), OTHER.public_key()], threshold=2)


def test_other_tools_verify_it() -> None:
    peer = Envelope.from_dict(json.loads(sign(profiled(), KEY)))
    public = KEY.public_key().public_bytes_raw().hex()
    assert peer.verify([SSlibKey(public, "ed25519", "ed25519", {"public": public})], 1)
    found = json.loads(peer.payload)
    assert found["subject"][0]["name"] == profiled().digest.hex()
    assert found["predicate"]["task"] == profiled().task


def test_an_envelope_about_something_else() -> None:
    thin = replace(profiled(), claim=replace(profiled().claim, margin=1))
    other_task = replace(profiled(), task="00" * 32)
    other_type = dsse_envelope.seal("text/plain", canonical_json.encode(statement(profiled())), KEY).encode()
    for envelope in (sign(thin, KEY), sign(other_task, KEY), other_type):
        with pytest.raises(ProtocolError, match="not about profile"):
            verify(envelope, profiled(), [KEY.public_key()])
