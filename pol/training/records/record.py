"""The learning record: what a training publishes while it runs (docs/spec/learning_record.md).

It grows by one checkpoint at a time. Its log is append-only; whoever trusts a key can check that each signed head is
one of this log.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pol.commitments.log import CheckpointLog
from pol.errors import ProtocolError
from pol.training import canonical_json
from pol.training.storage.store import Store

VERSION = 1
DOCUMENT_LIMIT = 1 << 28
HEAD = "record.json"
GIVEN: Mapping[str, Any] = {"kind": "given"}


@dataclass(frozen=True)
class RecordedCheckpoint:
    """An entry of the log: the complete root after ``step`` steps, and the digest of the checkpoint's document."""

    step: int
    root: bytes
    object: str


@dataclass(frozen=True)
class SignedHead:
    """A signature over the log when it had ``size`` entries (docs/spec/learning_record.md, "Signed heads")."""

    size: int
    signature: bytes


@dataclass(frozen=True)
class LearningRecord:
    """The document. ``run`` names the training, ``start`` says what checkpoint 0 is, ``signer`` is an Ed25519 key."""

    run: bytes
    start: Mapping[str, Any]
    interval: int
    checkpoints: tuple[RecordedCheckpoint, ...]
    signer: bytes | None = None
    heads: tuple[SignedHead, ...] = field(default=())

    def __post_init__(self) -> None:
        steps = [checkpoint.step for checkpoint in self.checkpoints]
        if any(later <= earlier for earlier, later in itertools.pairwise(steps)):
            raise ProtocolError("the steps of the recorded checkpoints don't increase")
        if len(self.run) != 32 or (self.signer is not None and len(self.signer) != 32):
            raise ProtocolError("a run's name and a signer's key have 32 bytes")
        if any(not 1 <= head.size <= len(steps) for head in self.heads):
            raise ProtocolError(f"a signed head is of more than the {len(steps)} checkpoints of the log")
        if any(later.size <= earlier.size for earlier, later in itertools.pairwise(self.heads)):
            raise ProtocolError("the sizes of the signed heads don't increase")
        if (self.signer is None) != (not self.heads):
            raise ProtocolError("a record has a signer if and only if it has signed heads")

    @property
    def log(self) -> CheckpointLog:
        """The checkpoint log over the complete roots."""
        return CheckpointLog([checkpoint.root for checkpoint in self.checkpoints])

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": "pol/learning-record",
                "version": VERSION,
                "run": self.run.hex(),
                "start": dict(self.start),
                "interval": self.interval,
                "checkpoints": [{"step": c.step, "root": c.root.hex(), "object": c.object} for c in self.checkpoints],
                "log_size": len(self.checkpoints),
                "log_root": self.log.root().hex() if self.checkpoints else "",
                "signer": "" if self.signer is None else self.signer.hex(),
                "heads": [{"size": head.size, "signature": head.signature.hex()} for head in self.heads],
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> LearningRecord:
        """The record in a document. Signatures are checked by `pol.training.records.signing`.

        Raises:
            ProtocolError: not the canonical bytes of a learning record, or a log root that isn't that of its entries.
        """
        what = "the learning record"
        names = [
            "kind",
            "version",
            "run",
            "start",
            "interval",
            "checkpoints",
            "log_size",
            "log_root",
            "signer",
            "heads",
        ]
        fields = canonical_json.Fields(canonical_json.decode(data, what), what, names)
        if fields.text("kind") != "pol/learning-record" or fields.integer("version") != VERSION:
            raise ProtocolError(f"not a learning record of version {VERSION}")
        record = cls(
            run=fields.hash("run"),
            start=fields.object("start"),
            interval=fields.integer("interval", 1),
            checkpoints=tuple(_checkpoint(item) for item in fields.items("checkpoints")),
            signer=fields.hash("signer") if fields.text("signer") else None,
            heads=tuple(_head(item) for item in fields.items("heads")),
        )
        if record.encode() != data:
            raise ProtocolError(f"{what} states another log than its checkpoints have")
        return record


def load(store: Store, digest: str | None = None) -> LearningRecord:
    """The record with this digest, or the newest one that the store's training has published.

    Raises:
        ProtocolError: it isn't one.
        OperationalError: the store failed, or nothing has been published.
    """
    if digest is None:
        return LearningRecord.decode(store.read(HEAD, limit=DOCUMENT_LIMIT))
    return LearningRecord.decode(store.get_public(digest, limit=DOCUMENT_LIMIT))


def publish(store: Store, record: LearningRecord) -> str:
    """Store the record under its digest, then as the store's newest; the digest.

    What it points at has been stored before, so the newest record is whole at any moment.

    Raises:
        OperationalError: the store failed; the record before is still the newest.
    """
    data = record.encode()
    digest = store.put_public(data)
    store.replace(HEAD, data)
    return digest


def _checkpoint(item: object) -> RecordedCheckpoint:
    fields = canonical_json.Fields(item, "a recorded checkpoint", ["step", "root", "object"])
    return RecordedCheckpoint(fields.integer("step"), fields.hash("root"), fields.digest("object"))


def _head(item: object) -> SignedHead:
    fields = canonical_json.Fields(item, "a signed head", ["size", "signature"])
    signature = fields.text("signature")
    try:
        return SignedHead(fields.integer("size", 1), bytes.fromhex(signature))
    except ValueError as error:
        raise ProtocolError("the signature of a head isn't written in hexadecimal") from error
