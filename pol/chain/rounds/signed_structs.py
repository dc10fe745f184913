"""What workers have signed, as arguments of the contracts of rounds (contracts/rounds/RoundTypes.sol)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, TypeAlias

from web3 import Web3

from pol.chain.account.wallet import Wallet
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.commitments import merkle
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry, encode_entry
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


def sign_head(wallet: Wallet, head: LogHead) -> bytes:
    """The keeper's signature of a head, by whatever signs for its account.

    Raises:
        OperationalError: the signer failed.
    """
    members = {"plan": "bytes32", "size": "uint64", "root": "bytes32"}
    types = {"LogHead": [{"name": name, "type": kind} for name, kind in members.items()]}
    message = {name: getattr(head, name) for name in members}
    return wallet.sign_typed({"name": "pol rounds", "version": "1"}, types, message)


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


def roster_places(document: bytes, last: bool = False) -> Struct:
    """``RosterPlaces``: where each stands; ``last``: in a text that says something twice, the last one of each."""
    find = document.rfind if last else document.find
    return tuple(max(0, find(name)) for name in (b'"provisional":', b'"members":[', b'"routes":['))


def covered_source(claim: RoundClaim, sources: Sequence[BoundSlot], source: bytes) -> Struct:
    """``CoveredSource``: the claim with the digest ``source``, if it is one, among the sources of another claim."""
    slot = next((slot for slot, bound in enumerate(sources) if bound.claim == source), 0)
    return claim_struct(claim), len(sources), source_proof(sources, slot)


def roster_fact(document: bytes, signature: bytes, worker: str, last: bool = False) -> tuple[Struct, Struct]:
    """``RosterFact`` and ``SignedRoster``: what a roster's document, which somebody has signed, says of a worker.

    last: as `roster_places`.
    """
    name, stands, places = Web3.to_checksum_address(worker), _seat(document, worker), roster_places(document, last)
    said = re.match(rb'"provisional":(true|"([0-9a-f]{64})|)', document[places[0] :])
    begun = bytes.fromhex(said[2].decode()) if said and said[2] else bytes(32)
    if said and said[1] == b"true":
        begun = b"\xff" * 32
    fact = (keccak256(document), places, begun, name, int(stands[1]) + 1 if stands else 0)
    return fact, (document, places, stands is not None, stands.start() if stands else 0, signature)


def member_proof(roster: Roster, signature: bytes, worker: str) -> Struct:
    """``SignedRoster`` that has a worker. Raises ProtocolError: the worker isn't in the roster."""
    (*_, seat), proof = roster_fact(roster.encode(), signature, worker)
    if not seat:
        raise ProtocolError(f"{worker} is no member of the roster: show one that has it")
    return proof


def logged_entry(entry: ClaimEntry | RosterEntry, index: int, head: LogHead, path: Sequence[bytes]) -> Struct:
    """``LoggedEntry``; ``path`` is the inclusion path of entry ``index`` under the head."""
    data = encode_entry(entry)
    return data, data.index(entry.signature.hex().encode()), index, signed_head(head), list(path)


def first_member(document: bytes) -> str:
    """The first worker that has a seat in a text, roster or not; empty if nobody has."""
    stands = _seat(document, "0x[0-9a-f]{40}")
    return stands[0][-43:-1].decode() if stands else ""


def _seat(document: bytes, worker: str) -> re.Match[bytes] | None:
    """Where the seat of a worker stands in a roster's document."""
    return re.search(rb'"seat":([0-9]+),"weight":[0-9]+,"worker":"' + worker.lower().encode() + b'"', document)
