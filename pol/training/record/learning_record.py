"""The learning record that a training publishes while it runs (docs/spec/learning_record.md).

It grows checkpoint by checkpoint. Its log is append-only: with a trusted key one can check that each signed head is a
head of this log.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pol.commitments import canonical_json
from pol.commitments.checkpoint_log import CheckpointLog, LogEdge
from pol.errors import ProtocolError
from pol.training.storage.store import Store

KIND, VERSION = "pol/learning-record", 1
DOCUMENT_LIMIT = 1 << 28
HEAD = "record.json"
GIVEN: Mapping[str, Any] = {"kind": "given"}


@dataclass(frozen=True)
class RecordedCheckpoint:
    """An entry of the log: the complete root after ``step`` steps, and the digest of the checkpoint's document."""

    step: int
    root: bytes
    object: str

    def encode(self) -> bytes:
        """Its form in the document."""
        return canonical_json.encode({"step": self.step, "root": self.root.hex(), "object": self.object})


@dataclass(frozen=True)
class SignedHead:
    """A signature over the log when it had ``size`` entries (docs/spec/learning_record.md, "Signed heads")."""

    size: int
    signature: bytes

    def encode(self) -> bytes:
        """Its form in the document."""
        return canonical_json.encode({"size": self.size, "signature": self.signature.hex()})


@dataclass(frozen=True)
class LearningRecord:
    """The document. ``run`` names the training, ``start`` is the source of checkpoint 0, ``signer`` an Ed25519 key.

    `extended` and `with_head` reuse the serialized entries and hashes of this record, as a training publishes its
    record with every checkpoint.
    """

    run: bytes
    start: Mapping[str, Any]
    interval: int
    checkpoints: tuple[RecordedCheckpoint, ...]
    signer: bytes | None = None
    heads: tuple[SignedHead, ...] = field(default=())

    def __post_init__(self) -> None:
        steps = [checkpoint.step for checkpoint in self.checkpoints]
        # Without a loop in Python: this runs for every checkpoint.
        if steps != sorted(set(steps)):
            raise ProtocolError("the steps of the recorded checkpoints don't increase")
        if len(self.run) != 32 or (self.signer is not None and len(self.signer) != 32):
            raise ProtocolError("a run's name and a signer's key have 32 bytes")
        sizes = [head.size for head in self.heads]
        if sizes and not (min(sizes) >= 1 and max(sizes) <= len(steps)):
            raise ProtocolError(f"a signed head is of more than the {len(steps)} checkpoints of the log")
        if sizes != sorted(set(sizes)):
            raise ProtocolError("the sizes of the signed heads don't increase")
        if (self.signer is None) != (not self.heads):
            raise ProtocolError("a record has a signer if and only if it has signed heads")

    @property
    def log(self) -> CheckpointLog:
        """The checkpoint log over the complete roots."""
        return CheckpointLog([checkpoint.root for checkpoint in self.checkpoints])

    @property
    def log_root(self) -> bytes:
        """The root of the checkpoint log. Raises ProtocolError: there are no checkpoints."""
        return self._edge.root()

    def extended(self, checkpoint: RecordedCheckpoint) -> LearningRecord:
        """This record with one more checkpoint. Raises ProtocolError: its step isn't later than the last one."""
        longer = dataclasses.replace(self, checkpoints=(*self.checkpoints, checkpoint))
        entries, edge = _joined(self._entries, checkpoint.encode()), self._edge.append(checkpoint.root)
        vars(longer).update(_entries=entries, _head_entries=self._head_entries, _edge=edge)
        return longer

    def with_head(self, signer: bytes | None, head: SignedHead) -> LearningRecord:
        """This record with one more signed head."""
        longer = dataclasses.replace(self, signer=signer, heads=(*self.heads, head))
        heads = _joined(self._head_entries, head.encode())
        vars(longer).update(_entries=self._entries, _head_entries=heads, _edge=self._edge)
        return longer

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        rest = canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "run": self.run.hex(),
                "start": dict(self.start),
                "interval": self.interval,
                "log_size": len(self.checkpoints),
                "log_root": self.log_root.hex() if self.checkpoints else "",
                "signer": "" if self.signer is None else self.signer.hex(),
            }
        )
        # Members are in the order of their names: these two come first.
        return b'{"checkpoints":[%b],"heads":[%b],%b' % (self._entries, self._head_entries, rest[1:])

    @functools.cached_property
    def _entries(self) -> bytes:
        return b",".join(checkpoint.encode() for checkpoint in self.checkpoints)

    @functools.cached_property
    def _head_entries(self) -> bytes:
        return b",".join(head.encode() for head in self.heads)

    @functools.cached_property
    def _edge(self) -> LogEdge:
        return functools.reduce(LogEdge.append, (checkpoint.root for checkpoint in self.checkpoints), LogEdge())

    @classmethod
    def decode(cls, data: bytes) -> LearningRecord:
        """The record in a document. Signatures are checked by `pol.training.record.signed_heads`."""
        what = "the learning record"
        names = [*cls.__dataclass_fields__, "log_size", "log_root"]
        fields = canonical_json.Fields.of_document(data, what, KIND, VERSION, names)
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


def load_record(store: Store, digest: str | None = None) -> LearningRecord:
    """The record with this digest, or the newest one that the store's training has published.

    Raises:
        ProtocolError: the object isn't a learning record.
        OperationalError: the store failed, or nothing has been published.
    """
    if digest is None:
        return LearningRecord.decode(store.read(HEAD, limit=DOCUMENT_LIMIT))
    return LearningRecord.decode(store.get_public(digest, limit=DOCUMENT_LIMIT))


def publish(store: Store, record: LearningRecord) -> str:
    """Store the record under its digest, then as the store's newest; the digest.

    The objects that it names are already stored, so the newest record is whole at any moment.

    Raises:
        OperationalError: the store failed; the record before is still the newest.
    """
    data = record.encode()
    digest = store.put_public(data)
    store.replace(HEAD, data)
    return digest


def _joined(entries: bytes, entry: bytes) -> bytes:
    return b"%b,%b" % (entries, entry) if entries else entry


def _checkpoint(item: object) -> RecordedCheckpoint:
    fields = canonical_json.Fields(item, "a recorded checkpoint", ["step", "root", "object"])
    return RecordedCheckpoint(fields.integer("step"), fields.hash("root"), fields.digest("object"))


def _head(item: object) -> SignedHead:
    fields = canonical_json.Fields(item, "a signed head", ["size", "signature"])
    return SignedHead(fields.integer("size", 1), fields.octets("signature"))
