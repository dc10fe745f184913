"""Entries of a log of rounds: rosters, memberships, claims, receipts, quotes (docs/spec/rounds.md, "Log")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, TypeAlias

from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.rounds.round_claim import RoundClaim
from pol.rounds.typed_message import message_digest
from pol.rounds.worker_key import SIGNATURE_SIZE, WorkerKey, require_name, require_signed

DELIVERY_TYPE = "Delivery(bytes32 plan,uint64 round,bytes32 claim)"
MEMBERSHIP_TYPE = "Membership(bytes32 plan,uint64 round,uint8 kind)"


class Change(IntEnum):
    """What a worker says about its membership."""

    JOIN = 1
    LEAVE = 2
    HEARTBEAT = 3


@dataclass(frozen=True)
class RosterEntry:
    """A roster's document in the store, by its digest, and the coordinator's signature."""

    kind = "pol/roster"
    document: str
    signature: bytes


@dataclass(frozen=True)
class MembershipEntry:
    """A worker joins from a round on, leaves before it, or says in it that it is there."""

    kind = "pol/membership"
    plan: bytes
    round: int
    worker: str
    change: Change
    signature: bytes

    @property
    def digest(self) -> bytes:
        """The digest that the worker signs."""
        return message_digest(MEMBERSHIP_TYPE, [self.plan, self.round, int(self.change)])

    @classmethod
    def signed(cls, key: WorkerKey, plan: bytes, round_: int, change: Change) -> MembershipEntry:
        """The entry of a key's worker."""
        signature = key.sign(message_digest(MEMBERSHIP_TYPE, [plan, round_, int(change)]))
        return cls(plan, round_, key.name, change, signature)


@dataclass(frozen=True)
class ClaimEntry:
    """A signed claim, and the objects that show it: its sources, the roots of its end, the tensors of its end."""

    kind = "pol/round-claim"
    claim: RoundClaim
    signature: bytes
    sources: str
    roots: str
    tensors: str = ""
    """Empty: the author hasn't published them."""

    @property
    def worker(self) -> str:
        """The author."""
        return self.claim.worker


@dataclass(frozen=True)
class DeliveryEntry:
    """The receipt of a claim in a round, signed by its receiver."""

    kind = "pol/delivery"
    plan: bytes
    round: int
    claim: bytes
    receiver: str
    signature: bytes

    @property
    def digest(self) -> bytes:
        """The digest that the receiver signs."""
        return message_digest(DELIVERY_TYPE, [self.plan, self.round, self.claim])

    @classmethod
    def signed(cls, key: WorkerKey, plan: bytes, round_: int, claim: bytes) -> DeliveryEntry:
        """The receipt of a key's worker."""
        return cls(plan, round_, claim, key.name, key.sign(message_digest(DELIVERY_TYPE, [plan, round_, claim])))


@dataclass(frozen=True)
class QuoteEntry:
    """A quote of trusted hardware for a claim: its document in the store, by its digest. No worker signs it."""

    kind = "pol/quote"
    plan: bytes
    round: int
    claim: bytes
    document: str


LogEntry: TypeAlias = RosterEntry | MembershipEntry | ClaimEntry | DeliveryEntry | QuoteEntry
ENTRY_LIMIT, PAGE = 1 << 13, 256
"""Bytes of an entry; entries of a page."""


def encode_entry(entry: LogEntry) -> bytes:
    """The canonical bytes of an entry."""
    members: dict[str, Any] = {"kind": entry.kind}
    for field in fields(entry):
        value = getattr(entry, field.name)
        if isinstance(value, RoundClaim):
            members |= {part.name: _out(getattr(value, part.name)) for part in fields(value) if part.name != "sources"}
            members["sources_root"] = value.sources.hex()
        else:
            members[field.name] = _out(value)
    return canonical_json.encode(members)


def decode_entry(data: bytes) -> LogEntry:
    """The entry in a document; its signature isn't checked yet (`require_author`)."""
    if len(data) > ENTRY_LIMIT:
        raise ProtocolError(f"an entry of {len(data)} bytes: the log takes {ENTRY_LIMIT} at most")
    document = canonical_json.decode(data, "an entry of the log")
    kind = document.get("kind")
    match kind:
        case RosterEntry.kind:
            given = _fields(document, RosterEntry)
            return RosterEntry(given.digest("document"), given.octets("signature", SIGNATURE_SIZE))
        case MembershipEntry.kind:
            given = _fields(document, MembershipEntry)
            worker = require_name(given.text("worker"), "a worker")
            change = Change(given.integer("change", 1, len(Change)))
            signature = given.octets("signature", SIGNATURE_SIZE)
            return MembershipEntry(given.hash("plan"), given.integer("round"), worker, change, signature)
        case DeliveryEntry.kind:
            given = _fields(document, DeliveryEntry)
            receiver = require_name(given.text("receiver"), "a receiver")
            signature = given.octets("signature", SIGNATURE_SIZE)
            return DeliveryEntry(given.hash("plan"), given.integer("round"), given.hash("claim"), receiver, signature)
        case QuoteEntry.kind:
            given = _fields(document, QuoteEntry)
            return QuoteEntry(given.hash("plan"), given.integer("round"), given.hash("claim"), given.digest("document"))
        case ClaimEntry.kind:
            return _claim(document)
    raise ProtocolError(f"the log has an entry of the kind {kind!r}, which it can't have")


def require_author(entry: LogEntry) -> None:
    """Check the signature of an entry other than a roster, whose signer the plan names, and a quote."""
    match entry:
        case MembershipEntry():
            require_signed(entry.digest, entry.signature, entry.worker, f"a membership of round {entry.round}")
        case ClaimEntry():
            claim = entry.claim
            require_signed(claim.digest, entry.signature, entry.worker, f"a claim of round {claim.round}")
        case DeliveryEntry():
            require_signed(entry.digest, entry.signature, entry.receiver, f"a receipt of round {entry.round}")


def join_entries(entries: Iterable[bytes]) -> bytes:
    """Encoded entries as one object, or one message."""
    return b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)


def split_entries(data: bytes, most: int = PAGE) -> list[bytes]:
    """The encoded entries of an object, or of a message."""
    entries: list[bytes] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if at + 4 + size > len(data) or len(entries) == most:
            raise ProtocolError("a page of entries is cut off, or too long")
        entries.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return entries


def _claim(document: object) -> ClaimEntry:
    parts = [part.name for part in fields(RoundClaim) if part.name != "sources"]
    own = [field.name for field in fields(ClaimEntry) if field.name != "claim"]
    given = canonical_json.Fields(document, "a claim", ["kind", *parts, "sources_root", *own])
    claim = RoundClaim(
        given.hash("plan"),
        require_name(given.text("worker"), "a worker"),
        given.integer("round"),
        given.integer("phase"),
        given.integer("part"),
        given.hash("roster"),
        given.hash("program"),
        given.hash("constants"),
        given.integer("first_step"),
        given.integer("steps", 1),
        given.hash("start"),
        given.hash("end"),
        given.hash("sources_root"),
    )
    tensors = given.digest("tensors") if given.text("tensors") else ""
    return ClaimEntry(
        claim, given.octets("signature", SIGNATURE_SIZE), given.digest("sources"), given.digest("roots"), tensors
    )


def _fields(document: object, kind: type) -> canonical_json.Fields:
    return canonical_json.Fields(document, "an entry of the log", ["kind", *(field.name for field in fields(kind))])


def _out(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return int(value) if isinstance(value, Change) else value
