"""Signed heads of a learning record's log (docs/spec/learning_record.md, "Signed heads").

One signed head is enough to check, with a consistency path, that every later head extends it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pol.commitments import canonical_json
from pol.commitments.checkpoint_log import verify_consistency
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.record.learning_record import LearningRecord, SignedHead

DOMAIN = b"pol/log-head/1"
KIND, VERSION = "pol/log-head", 1


@dataclass(frozen=True)
class LogHead:
    """A signed head on its own. A reader who keeps it notices if history is rewritten."""

    run: bytes
    start: bytes
    """keccak-256 of the record's ``start``."""
    size: int
    root: bytes
    signer: bytes
    signature: bytes

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        return DOMAIN + self.run + self.start + self.size.to_bytes(8, "big") + self.root

    def verify(self) -> None:
        """ProtocolError unless the signature is that of the signer."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signer).verify(self.signature, self.message)
        except (InvalidSignature, ValueError) as error:
            raise ProtocolError(
                f"the head of size {self.size} isn't signed by {self.signer.hex()}: take the record from its publisher"
            ) from error

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        hashes = {name: getattr(self, name).hex() for name in ("run", "start", "root", "signer", "signature")}
        return canonical_json.encode({"kind": KIND, "version": VERSION, "size": self.size, **hashes})

    @classmethod
    def decode(cls, data: bytes) -> LogHead:
        """The head in a document; its signature is still to be verified."""
        names = cls.__dataclass_fields__
        fields = canonical_json.Fields.of_document(data, "the signed head", KIND, VERSION, names)
        hashes = {name: fields.hash(name) for name in ("run", "start", "root", "signer")}
        return cls(size=fields.integer("size", 1), signature=fields.octets("signature"), **hashes)


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key: the signer of a record."""
    return key.public_key().public_bytes_raw()


def sign(record: LearningRecord, key: Ed25519PrivateKey) -> LearningRecord:
    """The record with a signed head of its whole log. Raises ProtocolError: the record is signed by another key."""
    require_signer(record, key)
    unsigned = _head(record, len(record.checkpoints), record.log_root, public_bytes(key), b"")
    head = SignedHead(unsigned.size, key.sign(unsigned.message))
    if record.heads and record.heads[-1].size == head.size:
        return dataclasses.replace(record, heads=(*record.heads[:-1], head))
    return record.with_head(unsigned.signer, head)


def require_signer(record: LearningRecord, key: Ed25519PrivateKey | None) -> None:
    """ProtocolError unless the record is unsigned or this is its signer's key: a record has one signer."""
    if record.signer is None or (key is not None and record.signer == public_bytes(key)):
        return
    given = "no key was given" if key is None else f"the key given is that of {public_bytes(key).hex()}"
    raise ProtocolError(
        f"the record is signed by {record.signer.hex()}, and {given}: give the signer's key; if it is lost, begin a "
        "new record that starts from the last checkpoint of this one"
    )


def newest_head(record: LearningRecord) -> LogHead:
    """The signed head of a record's whole log, verified."""
    if record.signer is None or not record.heads:
        raise ProtocolError("the record isn't signed: give Recorder a key")
    last = record.heads[-1]
    if last.size != len(record.checkpoints):
        raise ProtocolError(
            f"the newest signed head is of {last.size} checkpoints, the record has {len(record.checkpoints)}"
        )
    head = _head(record, last.size, record.log_root, record.signer, last.signature)
    head.verify()
    return head


def verify_heads(record: LearningRecord) -> LogHead:
    """Verify all heads of a record; the newest one.

    Raises:
        ProtocolError: as `newest_head`, or a head is of another log or signer.
    """
    newest, log = newest_head(record), record.log
    for head in record.heads[:-1]:
        _head(record, head.size, log.root(head.size), newest.signer, head.signature).verify()
    return newest


def verify_extension(earlier: LogHead, later: LogHead, path: Sequence[bytes]) -> None:
    """Check from two signed heads and a consistency path that the later log extends the earlier one.

    Both heads are verified. If both signatures hold and the logs aren't consistent, the signer has signed two
    histories, and the two heads prove it to anybody.

    Raises:
        ProtocolError: a wrong signature, another run or signer, or a path that doesn't lead from one to the other.
    """
    earlier.verify()
    later.verify()
    if (earlier.run, earlier.start, earlier.signer) != (later.run, later.start, later.signer):
        raise ProtocolError("the two heads are of different runs, starts or signers")
    verify_consistency(earlier.root, earlier.size, later.root, later.size, path)


def _head(record: LearningRecord, size: int, root: bytes, signer: bytes, signature: bytes) -> LogHead:
    start = keccak256(canonical_json.encode(dict(record.start)))
    return LogHead(record.run, start, size, root, signer, signature)
