"""A learning record as an in-toto statement in a DSSE envelope, for supply-chain tools.

Source: https://github.com/in-toto/attestation, spec/v1/statement.md; docs/spec/learning_record.md, "Attestation".
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.training.record import dsse_envelope
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import CorruptObjectError, Store

Statement: TypeAlias = dict[str, Any]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:pol:learning-record:v1"
ENVIRONMENT = "environment"
_BLOCK = 1 << 20


def attest(store: Store, record: LearningRecord, key: Ed25519PrivateKey) -> bytes:
    """The signed envelope. Every file of the record is read, because in-toto names files by SHA-256."""
    return dsse_envelope.seal(PAYLOAD_TYPE, canonical_json.encode(statement(store, record)), key).encode()


def statement(store: Store, record: LearningRecord) -> Statement:
    """The statement about a record: its subjects are the files that hold the checkpoints."""
    if not record.checkpoints:
        raise ProtocolError("the record has no checkpoint yet: there is nothing to attest")
    run = RecordedRun(store, record)
    subjects: dict[str, str] = {}
    environments: list[dict[str, Any]] = []
    for checkpoint in record.checkpoints:
        saved = run.document(checkpoint)
        for name, size in ((checkpoint.object, len(saved.encode())), *stored_checkpoint.sizes(saved).items()):
            if name not in subjects:
                subjects[name] = _sha256(store, name, size)
        found = next((e.content.hex() for e in saved.entries if e.name == ENVIRONMENT), None)
        if found is not None and (not environments or environments[-1]["root"] != found):
            environments.append({"from_step": checkpoint.step, "root": found})
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "run": record.run.hex(),
            "log": {"size": len(record.checkpoints), "root": record.log_root.hex()},
            "start": dict(record.start),
            "interval": record.interval,
            "steps": record.checkpoints[-1].step,
            "checkpoints": [{"step": c.step, "root": c.root.hex(), "object": c.object} for c in record.checkpoints],
            "environments": environments,
        },
    }


def verify(envelope: bytes, keys: Sequence[Ed25519PublicKey], threshold: int = 1) -> Statement:
    """The statement in an envelope that enough of these keys have signed.

    Raises:
        ProtocolError: too few have, or it is no statement about a learning record.
    """
    opened = dsse_envelope.Envelope.decode(envelope)
    # Signatures first: a stranger's payload is not parsed.
    opened.verify(keys, threshold)
    if opened.payload_type != PAYLOAD_TYPE:
        raise ProtocolError(f"the envelope holds {opened.payload_type!r}, not {PAYLOAD_TYPE!r}")
    found = canonical_json.parse(opened.payload, "the in-toto statement")
    if not isinstance(found, dict) or found.get("_type") != STATEMENT_TYPE:
        raise ProtocolError("the envelope holds no in-toto statement of version 1")
    if found.get("predicateType") != PREDICATE_TYPE:
        raise ProtocolError(f"the statement is about {found.get('predicateType')!r}, not {PREDICATE_TYPE!r}")
    return found


def require_matches(found: Statement, store: Store, record: LearningRecord) -> None:
    """Check a verified statement against the record and every file in a store."""
    if found != statement(store, record):
        raise ProtocolError("the statement isn't about this record and these files")


def _sha256(store: Store, name: str, size: int) -> str:
    digest, left = hashlib.sha256(), size
    with store.open_file(name) as file:
        # The checkpoint states the size; a server's word could make this loop endless.
        while file.size == size and left and (block := file.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
        if file.size != size or left or file.read(1):
            raise CorruptObjectError(
                f"file {name} in {store.url} isn't the {size} bytes that its checkpoint gives (the store says "
                f"{file.size}): fetch another copy"
            )
    return digest.hexdigest()
