"""Digests and signatures of rounds are those of EIP-712, as eth_account computes them."""

from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st

from pol.commitments.checkpoint_log import CheckpointLog, LogEdge
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import (
    DELIVERY_TYPE,
    MEMBERSHIP_TYPE,
    Change,
    ClaimEntry,
    DeliveryEntry,
    LogEntry,
    MembershipEntry,
    RosterEntry,
    decode_entry,
    encode_entry,
    require_author,
)
from pol.rounds.log.rounds_log import HEAD_TYPE
from pol.rounds.roster import ROSTER_TYPE, Member, Roster, drawn_order, drawn_partners, require_drawn
from pol.rounds.round_claim import CLAIM_TYPE, RoundClaim
from pol.rounds.typed_message import message_digest
from pol.rounds.worker_key import WorkerKey, signer_of

pytestmark = pytest.mark.rules
SECRET = bytes(range(1, 33))
KEY = WorkerKey(SECRET)
WORDS = st.binary(min_size=32, max_size=32)
CLAIM = RoundClaim(b"\1" * 32, KEY.name, 3, 1, 2, b"\2" * 32, b"\3" * 32, b"\4" * 32, 30, 10, *(b"\5" * 32,) * 3)


def typed_data(type_: str, values: list[bytes | int | str]) -> dict[str, Any]:
    name, _, rest = type_.partition("(")
    members = [dict(zip(("type", "name"), member.split(), strict=True)) for member in rest[:-1].split(",")]
    domain = [{"name": "name", "type": "string"}, {"name": "version", "type": "string"}]
    return {
        "types": {"EIP712Domain": domain, name: members},
        "domain": {"name": "pol rounds", "version": "1"},
        "primaryType": name,
        "message": {member["name"]: value for member, value in zip(members, values, strict=True)},
    }


def signed_elsewhere(type_: str, values: list[bytes | int | str]) -> bytes:
    return bytes(Account.sign_message(encode_typed_data(full_message=typed_data(type_, values)), SECRET).signature)


def test_a_claim() -> None:
    values: list[bytes | int | str] = [
        CLAIM.plan, CLAIM.worker, 3, 1, 2, CLAIM.roster, CLAIM.program, CLAIM.constants, 30, 10, *(b"\5" * 32,) * 3
    ]  # fmt: skip
    assert KEY.sign(CLAIM.digest) == signed_elsewhere(CLAIM_TYPE, values)
    assert KEY.name == Account.from_key(SECRET).address.lower()


@pytest.mark.parametrize("type_", [DELIVERY_TYPE, MEMBERSHIP_TYPE, ROSTER_TYPE, HEAD_TYPE])
@given(first=WORDS, number=st.integers(0, 3), last=WORDS)
def test_other_messages(type_: str, first: bytes, number: int, last: bytes) -> None:
    values: list[bytes | int] = [first, number, last if "bytes32" in type_.rpartition(",")[2] else 2]
    assert KEY.sign(message_digest(type_, values)) == signed_elsewhere(type_, list(values))


def test_signatures_that_a_contract_refuses() -> None:
    signature = KEY.sign(CLAIM.digest)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    great = (order - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
    mirrored = signature[:32] + great + bytes([55 - signature[64]])
    assert signer_of(CLAIM.digest, signature) == KEY.name
    for wrong in (mirrored, signature[:-1], signature[:-1] + b"\0", bytes(64) + b"\x1b", b""):
        with pytest.raises(ProtocolError, match="nobody's"):
            signer_of(CLAIM.digest, wrong)


ENTRIES: list[LogEntry] = [
    RosterEntry("ab" * 32, KEY.sign(bytes(32))),
    MembershipEntry.signed(KEY, b"\1" * 32, 4, Change.LEAVE),
    DeliveryEntry.signed(KEY, b"\1" * 32, 4, b"\2" * 32),
    ClaimEntry(CLAIM, KEY.sign(CLAIM.digest), "ab" * 32, "cd" * 32, ""),
    ClaimEntry(CLAIM, KEY.sign(CLAIM.digest), "ab" * 32, "cd" * 32, "ef" * 32),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=[f"{number}-{entry.kind}" for number, entry in enumerate(ENTRIES)])
def test_entries(entry: LogEntry) -> None:
    data = encode_entry(entry)
    assert decode_entry(data) == entry
    require_author(entry)
    for wrong in (data[:-1], data.replace(b'"pol/', b'"pol.'), data.replace(b":", b": ", 1), b"[]", b"x" * 10_000):
        with pytest.raises(ProtocolError):
            decode_entry(wrong)


@pytest.mark.parametrize(
    "member", ["round", "phase", "part", "first_step", "steps", "start", "end", "sources", "worker"]
)
def test_a_signature_covers_each_member(member: str) -> None:
    other = {"worker": WorkerKey(b"\7" * 32).name}.get(member, b"\6" * 32)
    value = getattr(CLAIM, member)
    changed = replace(CLAIM, **{member: value + 1 if isinstance(value, int) else other})
    with pytest.raises(ProtocolError, match="is signed by"):
        require_author(ClaimEntry(changed, KEY.sign(CLAIM.digest), "ab" * 32, "cd" * 32))


def test_rosters() -> None:
    members = tuple(Member(WorkerKey(bytes([n]) * 32).name, n - 1, joined=0) for n in range(1, 6))
    beacon = b"\x0b" * 32
    roster = Roster(b"\1" * 32, 7, members, drawn_partners(beacon, 7, members), beacon=beacon)
    for written in (roster, replace(roster, routes=((0, 1), (2, 3)))):
        assert Roster.decode(written.encode()) == written
    for name in ("seat", "weight"):
        widest, wider = (
            replace(roster, members=(replace(members[0], **{name: value}), *members[1:]))
            for value in ((1 << 32) - 1, 1 << 32)
        )
        assert Roster.decode(widest.encode()) == widest
        with pytest.raises(ProtocolError, match=name):
            Roster.decode(wider.encode())
    require_drawn(roster)
    chosen = replace(roster, partners=(0, 1, 2, 3, 4))
    for wrong, before in ((chosen, []), (roster, [beacon]), (replace(roster, beacon=b""), [])):
        with pytest.raises(ProtocolError):
            require_drawn(wrong, before)
    for problem in ({"members": ()}, {"members": members[:1] * 2}, {"partners": (9,) * 5}):
        with pytest.raises(ProtocolError):
            replace(roster, **problem)  # type: ignore[arg-type]  # members by name


@given(beacon=WORDS, round_=st.integers(1, 2**40), count=st.integers(1, 40))
def test_draws_are_permutations(beacon: bytes, round_: int, count: int) -> None:
    assert sorted(drawn_order(beacon, round_, 0, count)) == list(range(count))
    members = [Member(f"0x{place:040x}", place, joined=round_ - place % 2) for place in range(count)]
    partners = drawn_partners(beacon, round_, members)
    assert all(partners[partners[place]] == place for place in range(count))
    assert sum(partners[place] == place for place in range(count)) == count % 2
    # Who is whose partner doesn't depend on the order in which the coordinator names them, nor on their seats.
    turned = [replace(member, seat=count - member.seat) for member in members[::-1]]
    again = drawn_partners(beacon, round_, turned)
    assert [turned[partner].worker for partner in again[::-1]] == [members[partner].worker for partner in partners]


def test_the_log_is_that_of_the_specification() -> None:
    leaves = [keccak256(encode_entry(entry)) for entry in ENTRIES]
    edge = LogEdge()
    for leaf in leaves:
        edge = edge.append(leaf)
    assert edge.root() == CheckpointLog(leaves).root()
