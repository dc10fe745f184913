"""Demands with a clock: sources, rosters, entries, paths (contracts/rounds/RoundDemands.sol, TimedDemands.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3 import Web3
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.leaf_demands import LeafDemand, LeafDemands
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.signed_structs import (
    Struct,
    claim_struct,
    covered_source,
    member_proof,
    phase_proof,
    rule_proof,
    signed_claim,
    signed_head,
    source_proof,
)
from pol.commitments import merkle
from pol.commitments.keccak import keccak256
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.roster import Roster
from pol.rounds.round_claim import INITIAL, BoundSlot, RoundClaim


@dataclass(frozen=True)
class RoundDemand(LeafDemand):
    """A demand: the accused shows something until ``deadline``, or loses its stake."""

    ABI_TYPE = "(bytes32,address,address,uint64,uint256,bytes32)"

    id: bytes
    accused: ChecksumAddress
    demander: ChecksumAddress
    deadline: int
    bond: int
    content: bytes


def entry_content(entry: ClaimEntry) -> bytes:
    """What is demanded of the keeper when its log is without a claim that it has acknowledged."""
    return keccak256(encode(["string", "bytes32", "address"], ["entry", entry.claim.digest, entry.worker]))


def length_content(worker: str) -> bytes:
    """What is demanded of the keeper when a worker has gone."""
    return keccak256(encode(["string", "address"], ["length", worker]))


class TimedDemands(LeafDemands[RoundDemand]):
    """What all demands have in common; `demands` are those of a plan, `expire` ends one."""

    DEMAND = RoundDemand
    OWNER = "id"

    def roster_bond(self, plan_id: bytes) -> int:
        """The bond of a demand whose answer may show a roster, now; what the answer doesn't cost goes back."""
        return int(self.read("rosterBondOf", plan_id))

    def shown_roster(self, plan_id: bytes, document: bytes) -> Roster | None:
        """A roster that was shown in an answer; its coordinator has signed it.

        Raises:
            ProtocolError: the document is no roster.
        """
        shown = self.events("RosterShown", id=plan_id, document=document)
        return Roster.decode(bytes(shown[0]["text"])) if shown else None


class RoundDemands(TimedDemands):
    """The desk of demands for sources, rosters, entries of the log, its length and consistency paths."""

    def bond(self, plan_id: bytes) -> int:
        """The bond of a demand whose answer shows no roster, now: the price of its answer."""
        return int(self.read("bondOf", plan_id))

    def demand_source(
        self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry, commitment: PlanCommitment, slot: int
    ) -> RoundDemand:
        """Demand the claim behind a slot of a claim's start from its author.

        Raises:
            Reverted: the worker can't be accused (any more), the claim's phase has no such slot, or the vault holds too
                little of the wallet's money.
        """
        most, phase = 2 * self.roster_bond(plan_id), phase_proof(commitment, entry.claim.phase)
        return self._demanded(self.transact(wallet, "demandSource", plan_id, signed_claim(entry), phase, slot, most))

    def answer_source(
        self,
        wallet: Wallet,
        demand: RoundDemand,
        entry: ClaimEntry,
        commitment: PlanCommitment,
        sources: Sequence[BoundSlot],
        slot: int,
        named: ClaimEntry | None = None,
        end: Sequence[bytes] = (),
        member: Struct = (b"", (0, 0, 0), False, 0, b""),
    ) -> TxReceipt:
        """Show it; ``named`` is the claim that gives the slot, ``end`` are the tensor roots of its end.

        member: if the author of ``named`` has no stake, that it is in a roster of its round
        (`signed_structs.member_proof`).

        Raises:
            Reverted: it is late, or something of it is false.
        """
        source = sources[slot]
        given = named or entry
        if source.claim == INITIAL:
            branch = commitment.initial_branch(source.slot)
        else:
            branch = merkle.branch(list(end), source.slot)
        answer: Struct = (
            phase_proof(commitment, entry.claim.phase),
            source_proof(sources, slot),
            rule_proof(commitment, entry.claim.phase, slot),
            merkle.branch([each.root for each in sources], slot),
            signed_claim(given),
            phase_proof(commitment, given.claim.phase),
            branch,
            member,
        )
        return self.transact(wallet, "answerSource", astuple(demand), claim_struct(entry.claim), answer)

    def demand_roster(self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry) -> RoundDemand:
        """Demand the roster that a claim names from its author. Raises as `demand_source`."""
        most = 2 * self.roster_bond(plan_id)
        return self._demanded(self.transact(wallet, "demandRoster", plan_id, signed_claim(entry), most))

    def answer_roster(
        self, wallet: Wallet, demand: RoundDemand, entry: ClaimEntry, roster: Roster, signature: bytes
    ) -> TxReceipt:
        """Show it with its coordinator's signature, to all (`shown_roster`).

        Raises:
            ProtocolError: the claim's author isn't in the roster.
            Reverted: it is late, or the coordinator hasn't signed this roster for the claim's round.
        """
        member = member_proof(roster, signature, entry.worker)
        return self.transact(wallet, "answerRoster", astuple(demand), claim_struct(entry.claim), member)

    def demand_entry(
        self,
        wallet: Wallet,
        plan_id: bytes,
        receipt: DeliveryEntry,
        entry: ClaimEntry,
        covered: tuple[RoundClaim, Sequence[BoundSlot]] | None = None,
    ) -> RoundDemand:
        """Demand the entry of a claim that the keeper has acknowledged, or of its source. Raises as `demand_source`.

        covered: the claim that the receipt is of, and its sources, if ``entry`` is one of these.
        """
        delivery = (receipt.plan, receipt.round, receipt.claim)
        claim, sources = covered or (entry.claim, [BoundSlot(INITIAL, 0, INITIAL)])
        source = covered_source(claim, sources, entry.claim.digest)
        arguments = (plan_id, (delivery, receipt.signature), source, signed_claim(entry), 2 * self.bond(plan_id))
        return self._demanded(self.transact(wallet, "demandEntry", *arguments))

    def answer_entry(self, wallet: Wallet, demand: RoundDemand, entry: ClaimEntry, logged: Struct) -> TxReceipt:
        """Show it (`signed_structs.logged_entry`). Raises as `answer_source`."""
        worker = claim_struct(entry.claim)[1]
        return self.transact(wallet, "answerEntry", astuple(demand), entry.claim.digest, worker, logged)

    def shown_entries(self, plan_id: bytes) -> dict[bytes, Struct]:
        """By claim, the entries that the keeper was asked for and has shown: as `signed_structs.logged_entry`."""
        found = dict[bytes, Struct]()
        for event in self.events("EntryShown", id=plan_id):
            shown = event["logged"]
            head = (tuple(shown["head"]["head"].values()), shown["head"]["signature"])
            found[bytes(event["claim"])] = (shown["entry"], shown["offset"], shown["index"], head, shown["path"])
        return found

    def demand_roster_entry(self, wallet: Wallet, plan_id: bytes, roster: Roster, signature: bytes) -> RoundDemand:
        """Demand the entry of a roster that the keeper has signed from it. Raises as `demand_source`."""
        about = (plan_id, roster.round, roster.document, signature, 2 * self.bond(plan_id))
        return self._demanded(self.transact(wallet, "demandRosterEntry", *about))

    def answer_roster_entry(
        self, wallet: Wallet, demand: RoundDemand, round_: int, document: bytes, logged: Struct
    ) -> TxReceipt:
        """Show it (`signed_structs.logged_entry`). Raises as `answer_source`."""
        return self.transact(wallet, "answerRosterEntry", astuple(demand), round_, document, logged)

    def demand_length(self, wallet: Wallet, plan_id: bytes, worker: str) -> RoundDemand:
        """Demand how long the keeper's log is, as a worker has gone. Raises as `demand_source`."""
        name = Web3.to_checksum_address(worker)
        return self._demanded(self.transact(wallet, "demandLength", plan_id, name, 2 * self.bond(plan_id)))

    def answer_length(self, wallet: Wallet, demand: RoundDemand, worker: str, head: LogHead) -> TxReceipt:
        """Say it, by the newest head: what the keeper signs with that worker from now on costs its stake.

        Raises:
            Reverted: it is late, or the wallet isn't the keeper's.
        """
        name = Web3.to_checksum_address(worker)
        return self.transact(wallet, "answerLength", astuple(demand), name, signed_head(head))

    def demand_path(self, wallet: Wallet, plan_id: bytes, older: LogHead, newer: LogHead) -> RoundDemand:
        """Demand that a head of the keeper's is shown to extend another one. Raises as `demand_source`."""
        heads = (signed_head(older), signed_head(newer))
        return self._demanded(self.transact(wallet, "demandPath", plan_id, *heads, 2 * self.bond(plan_id)))

    def answer_path(
        self, wallet: Wallet, demand: RoundDemand, older: LogHead, newer: LogHead, path: Sequence[bytes]
    ) -> TxReceipt:
        """Show it, by the RFC's consistency path. Raises as `answer_source`."""
        heads = (signed_head(older), signed_head(newer))
        return self.transact(wallet, "answerPath", astuple(demand), *heads, list(path))
