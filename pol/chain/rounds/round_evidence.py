"""Evidence that signatures and branches give: false roots and equivocations (contracts/rounds/RoundEvidence.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from web3 import Web3
from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.signed_structs import (
    Struct,
    claim_struct,
    member_proof,
    phase_proof,
    roster_document,
    roster_fact,
    roster_places,
    rule_proof,
    signed_claim,
    signed_head,
    source_proof,
    tensor_proof,
)
from pol.commitments.keccak import keccak256
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.roster import Roster
from pol.rounds.round_claim import BoundSlot, RoundClaim, encode_sources


class Falsehood(IntEnum):
    """What was shown to be wrong; the contract's numbers."""

    OTHER_PHASE = 1
    OTHER_SEAT = 2
    OTHER_START = 3
    OTHER_SOURCE = 4
    OTHER_INITIAL = 5
    OTHER_RULE = 6
    OTHER_MEMBER = 7
    TWO_CLAIMS = 8
    TWO_ROSTERS = 9
    FORKED_LOG = 10
    UNSTAKED_MEMBER = 11
    SHARED_SEAT = 12
    OTHER_AUTHOR = 13
    LATE_MEMBER = 14


RosterWord: TypeAlias = tuple[bytes, bytes, str] | tuple[bytes, bytes, str, bool]
"""A roster's document, its coordinator's signature, of which worker it says something; and, of a text that says things
twice, whether the last ones are read."""


@dataclass(frozen=True)
class AccusedSource:
    """A slot of the start of a claim, and the sources that the claim has."""

    entry: ClaimEntry
    commitment: PlanCommitment
    sources: Sequence[BoundSlot]
    slot: int

    @property
    def slot_of_giver(self) -> int:
        """The slot, or the index of the initial value, that the source names."""
        return self.sources[self.slot].slot

    @property
    def structs(self) -> tuple[Struct, Struct, Struct]:
        """``SignedClaim``, ``PhaseProof`` and ``SourceProof``."""
        phase = phase_proof(self.commitment, self.entry.claim.phase)
        return signed_claim(self.entry), phase, source_proof(self.sources, self.slot)

    @property
    def rule(self) -> Struct:
        """``RuleProof``."""
        return rule_proof(self.commitment, self.entry.claim.phase, self.slot)


class RoundEvidence(Announcements):
    """Slashes; whoever shows it wins the smaller share.

    All verbs announce what they show a block before, so that nobody copies it, and raise Reverted if nothing is wrong.
    """

    def show_other_phase(
        self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry, commitment: PlanCommitment
    ) -> TxReceipt:
        """A claim whose program, constants, steps, round or part aren't the plan's."""
        index = min(entry.claim.phase, len(commitment.phases) - 1)
        proof, constants = phase_proof(commitment, index), commitment.constants(index)
        return self._show(wallet, "showOtherPhase", plan_id, signed_claim(entry), proof, constants)

    def show_other_author(
        self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry, commitment: PlanCommitment, roster: Roster
    ) -> TxReceipt:
        """A claim that the author of its phase and its ``roster``, which has to be final, leave to another member."""
        about = (signed_claim(entry), phase_proof(commitment, entry.claim.phase))
        document = roster.encode()
        return self._show(wallet, "showOtherAuthor", plan_id, *about, document, roster_places(document))

    def show_other_seat(
        self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry, commitment: PlanCommitment, roster: Roster
    ) -> TxReceipt:
        """A claim with the constants of another seat than its ``roster`` gives its author.

        Raises:
            ProtocolError: the author isn't in the roster.
        """
        claim, member = entry.claim, roster.members[roster.place(entry.worker)]
        roots = [constants.root for constants in commitment.plan.phases[claim.phase].constants]
        constants = tensor_proof(roots, min(member.seat, len(roots) - 1))
        proof = phase_proof(commitment, claim.phase)
        document, _, _, offset, _ = member_proof(roster, b"", entry.worker)
        about = (signed_claim(entry), proof, document, offset, constants)
        return self._show(wallet, "showOtherSeat", plan_id, *about)

    def show_other_start(
        self,
        wallet: Wallet,
        plan_id: bytes,
        entry: ClaimEntry,
        commitment: PlanCommitment,
        sources: Sequence[BoundSlot],
    ) -> TxReceipt:
        """A start that isn't the state over the roots of the claim's sources."""
        proof = phase_proof(commitment, entry.claim.phase)
        about = (signed_claim(entry), proof, encode_sources(sources))
        return self._show(wallet, "showOtherStart", plan_id, *about)

    def show_other_source(
        self, wallet: Wallet, plan_id: bytes, source: AccusedSource, named: RoundClaim, end: Sequence[bytes]
    ) -> TxReceipt:
        """A source with another root than the end of the claim ``named`` by it, whose tensor roots are ``end``."""
        given = phase_proof(source.commitment, named.phase)
        tensor = tensor_proof(end, min(source.slot_of_giver, len(end) - 1))
        about = (*source.structs, claim_struct(named), given, tensor)
        return self._show(wallet, "showOtherSource", plan_id, *about)

    def show_other_initial(self, wallet: Wallet, plan_id: bytes, source: AccusedSource) -> TxReceipt:
        """A source that is said to be an initial value, and isn't."""
        initial = [value.root for value in source.commitment.plan.initial]
        tensor = tensor_proof(initial, min(source.slot_of_giver, len(initial) - 1))
        return self._show(wallet, "showOtherInitial", plan_id, *source.structs, tensor)

    def show_other_rule(
        self, wallet: Wallet, plan_id: bytes, source: AccusedSource, named: RoundClaim | None = None
    ) -> TxReceipt:
        """A source that no roster makes the one of the plan's rule; ``named``: the claim that it names, if it does."""
        claim = named or source.entry.claim
        about = (*source.structs, source.rule, claim_struct(claim), phase_proof(source.commitment, claim.phase))
        return self._show(wallet, "showOtherRule", plan_id, *about)

    def show_other_member(
        self, wallet: Wallet, plan_id: bytes, source: AccusedSource, named: RoundClaim, roster: Roster
    ) -> TxReceipt:
        """A source of another member, partner or route than the claim's own ``roster`` gives; it names ``named``."""
        about = (*source.structs, source.rule, claim_struct(named), roster_document(roster))
        return self._show(wallet, "showOtherMember", plan_id, *about)

    def show_two_claims(self, wallet: Wallet, plan_id: bytes, one: ClaimEntry, other: ClaimEntry) -> TxReceipt:
        """Two claims of one worker for one round, phase and part."""
        return self._show(wallet, "showTwoClaims", plan_id, signed_claim(one), signed_claim(other))

    def show_rosters(
        self, wallet: Wallet, plan_id: bytes, round_: int, noted: RosterWord, shown: RosterWord
    ) -> TxReceipt:
        """What rosters of a round say of two workers, and can't: two rosters, a shared seat, or a late member.

        The first one is noted before: two of the longest are more than a transaction takes.
        """
        (fact, roster), (_, signed) = roster_fact(*noted), roster_fact(*shown)
        note = (plan_id, round_, fact[3], roster)
        about = (round_, fact, Web3.to_checksum_address(shown[2]), signed)
        return self._show(wallet, "showRosters", plan_id, *about, note=note)

    def show_unstaked_member(
        self,
        wallet: Wallet,
        plan_id: bytes,
        roster: Roster,
        signature: bytes,
        worker: str,
        logged: Struct = (b"", 0, 0, ((bytes(32), 0, bytes(32)), b""), ()),
    ) -> TxReceipt:
        """A signed ``roster`` with a member that has never put up a stake, or had gone: its coordinator is to blame.

        logged: of a member that had gone, the entry of the roster (`signed_structs.logged_entry`).

        Raises:
            ProtocolError: the worker isn't in the roster.
        """
        about = (roster.round, Web3.to_checksum_address(worker), member_proof(roster, signature, worker))
        return self._show(wallet, "showUnstakedMember", plan_id, *about, logged)

    def show_forked_log(
        self,
        wallet: Wallet,
        plan_id: bytes,
        one: LogHead,
        other: LogHead,
        index: int = 0,
        entries: Sequence[tuple[bytes, Sequence[bytes]]] = ((bytes(32), ()), (bytes(32), ())),
    ) -> TxReceipt:
        """Two heads with different entries at ``index``: of each the entry's digest and inclusion path.

        Heads of one size need no entries.
        """
        proofs = [(entry, list(path)) for entry, path in entries]
        return self._show(wallet, "showForkedLog", plan_id, signed_head(one), signed_head(other), index, *proofs)

    def _show(self, wallet: Wallet, verb: str, plan_id: bytes, *about: object, note: Struct = ()) -> TxReceipt:
        """Announce a call, then note what it takes for granted, unless that is done, and send it in a later block."""
        for _ in range(2):
            try:
                return self.transact(wallet, verb, plan_id, *about)
            except Reverted as error:
                # Nothing else is wrong with it: the contract asks for these at last, and for the announcement first.
                if error.error == "NotAnnounced":
                    self.announce_evidence(wallet, plan_id, keccak256(self.function(verb, plan_id, *about).data))
                elif error.error == "NotNoted":
                    noted = self.transact(wallet, "noteRoster", *note)
                    self.connection.wait_for_block(noted["blockNumber"] + 1)
                else:
                    raise
        return self.transact(wallet, verb, plan_id, *about)
