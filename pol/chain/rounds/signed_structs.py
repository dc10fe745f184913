"""What workers have signed, as arguments of the contracts of rounds (contracts/rounds/RoundTypes.sol)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, TypeAlias

from web3 import Web3

from pol.chain.rounds.plan_terms import PlanCommitment
from pol.commitments import merkle
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, encode_entry
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.roster import Roster
from pol.rounds.round_claim import BoundSlot, RoundClaim

Struct: TypeAlias = tuple[Any, ...]


def claim_struct(claim: RoundClaim) -> Struct:
    """``RoundClaim``."""
    members = astuple(claim)
    return (members[0], Web3.to_checksum_address(claim.worker), *members[2:])


def signed_claim(entry: ClaimEntry) -> Struct:
    """``SignedClaim``."""
    return claim_struct(entry.claim), entry.signature


def signed_head(head: LogHead) -> Struct:
    """``SignedHead``."""
    return (head.plan, head.size, head.root), head.signature


def source_proof(sources: Sequence[BoundSlot], slot: int) -> Struct:
    """``SourceProof`` of a slot of a start."""
    leaves = [merkle.leaf_hash(source.encode()) for source in sources]
    return slot, astuple(sources[slot]), merkle.branch(leaves, slot)


def tensor_proof(roots: Sequence[bytes], slot: int) -> Struct:
    """``TensorProof``: of a slot of a state of these tensor roots, or of one of these initial values."""
    return roots[slot], merkle.branch(roots, slot)


def phase_proof(commitment: PlanCommitment, index: int) -> Struct:
    """``PhaseProof``."""
    phase, branch = commitment.phase(index)
    return astuple(phase), branch


def rule_proof(commitment: PlanCommitment, phase: int, slot: int) -> Struct:
    """``RuleProof``."""
    rule, branch = commitment.rule(phase, slot)
    return astuple(rule), branch


def roster_document(roster: Roster) -> Struct:
    """``RosterDocument``; where a list is missing its place is that of the members."""
    text = roster.encode()
    members = text.index(b'"members":[')
    places = [text.find(name) for name in (b'"partners":[', b'"routes":[[', b'"arrivals":[')]
    return text, members, *(members if place < 0 else place for place in places)


def author_places(roster: Roster) -> Struct:
    """``AuthorPlaces``; where there are no routes their place is that of the members."""
    text, (_, members, _, routes, _) = roster.encode(), roster_document(roster)
    return text.index(b'"provisional":'), members, routes


def covered_source(claim: RoundClaim, sources: Sequence[BoundSlot], source: bytes) -> Struct:
    """``CoveredSource``: the claim with the digest ``source``, if it is one, among the sources of another claim."""
    slot = next((slot for slot, bound in enumerate(sources) if bound.claim == source), 0)
    return claim_struct(claim), len(sources), source_proof(sources, slot)


def signed_roster(roster: Roster, signature: bytes) -> tuple[Struct, Struct]:
    """``Roster`` and ``SignedRoster``."""
    text = roster.encode()
    return (roster.plan, roster.round, roster.document), (text, text.index(b'"provisional":'), signature)


def member_proof(roster: Roster, signature: bytes, worker: str) -> Struct:
    """``MemberProof``: the document, the byte at which the seat of a worker stands, and the coordinator's signature.

    Raises:
        ProtocolError: the worker isn't in the roster.
    """
    text = roster.encode()
    return text, seat_offset(text, worker), signature


def seat_offset(document: bytes, worker: str) -> int:
    """The byte of a roster's document at which the seat of a worker stands.

    Raises:
        ProtocolError: the worker isn't in the roster.
    """
    stands = re.search(rb'"seat":[0-9]+,"weight":[0-9]+,"worker":"' + worker.lower().encode() + b'"', document)
    if stands is None:
        raise ProtocolError(f"{worker} is no member of the roster: show one that has it")
    return stands.start()


def logged_claim(entry: ClaimEntry, index: int, head: LogHead, path: Sequence[bytes]) -> Struct:
    """``LoggedClaim``; ``path`` is the inclusion path of entry ``index`` under the head."""
    data = encode_entry(entry)
    return data, data.index(entry.signature.hex().encode()), index, signed_head(head), list(path)
