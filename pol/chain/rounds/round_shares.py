"""Pay and ownership by proven work (contracts/rounds/RoundShares.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.round_demands import RoundDemand, TimedDemands
from pol.chain.rounds.signed_structs import Struct, claim_struct, member_proof, phase_proof
from pol.commitments import merkle
from pol.incentives.work_shares import CountedClaim, encode_line
from pol.rounds.roster import Roster
from pol.rounds.round_claim import RoundClaim


@dataclass(frozen=True)
class RoundSettlement:
    """One settlement of a plan; times in seconds, ``returned`` in the smallest unit."""

    lines_until: int
    closes: int
    units: int
    returned: int


@dataclass(frozen=True)
class WorkLine:
    """What a worker counts in a settlement."""

    units: int
    """Zero if it is void."""
    paid: int
    count: int
    is_owned: bool
    root: bytes


@dataclass(frozen=True)
class WorkOwned:
    """What a worker owns of a training: ``units`` of all that were proven."""

    counted: int
    units: int


class RoundShares(TimedDemands):
    """The desk of settlements."""

    def open(self, wallet: Wallet, plan_id: bytes) -> int:
        """Open the next settlement; its number.

        Raises:
            Reverted: a period hasn't passed since the one before, or all have been.
        """
        return int(self.emitted(self.transact(wallet, "open", plan_id), "SettlementOpened")["settlement"])

    def post(
        self, wallet: Wallet, plan_id: bytes, number: int, claims: Sequence[CountedClaim], commitment: PlanCommitment
    ) -> TxReceipt:
        """Count claims of the wallet's worker, in order of round, phase and part.

        Raises:
            Reverted: it is too late, one was counted before, or the plan has no such place.
        """
        phases = [(index, phase_proof(commitment, index)) for index in sorted({claim.phase for claim in claims})]
        return self.transact(wallet, "post", plan_id, number, encode_line(claims), phases)

    def demand_counted(
        self, wallet: Wallet, plan_id: bytes, number: int, worker: ChecksumAddress, index: int
    ) -> RoundDemand:
        """Demand to see a claim that a line counts. Raises Reverted: there is none, or it is too late."""
        most = 2 * self.roster_bond(plan_id)
        return self._demanded(self.transact(wallet, "demandCounted", plan_id, number, worker, index, most))

    def answer_counted(
        self,
        wallet: Wallet,
        demand: RoundDemand,
        number: int,
        line: Sequence[CountedClaim],
        index: int,
        claim: RoundClaim,
        commitment: PlanCommitment,
        roster: tuple[Roster, bytes],
        logged: Struct,
    ) -> TxReceipt:
        """Show it; ``roster`` is the one that it names, with the coordinator's signature.

        logged: its entry (`signed_structs.logged_entry`).

        Raises:
            ProtocolError: the claim's author isn't in the roster.
            Reverted: it is late, the line counts something else, or the plan leaves the claim to another member.
        """
        proof: Struct = (
            merkle.branch([counted.leaf for counted in line], index),
            phase_proof(commitment, claim.phase),
            member_proof(*roster, claim.worker),
            logged,
        )
        return self.transact(wallet, "answerCounted", astuple(demand), number, index, claim_struct(claim), proof)

    def settle(self, wallet: Wallet, plan_id: bytes, number: int, worker: ChecksumAddress | None = None) -> TxReceipt:
        """Pay a line what it is due by now, or take that of a slashed worker out; anybody may do it.

        Raises:
            Reverted: lines can still be disputed, an accusation of the worker is open, or nothing is due.
        """
        return self.transact(wallet, "settle", plan_id, number, worker or wallet.address)

    def close(self, wallet: Wallet, plan_id: bytes, number: int) -> TxReceipt:
        """Pay back the part of a settlement for which no work was counted; anybody may do it."""
        return self.transact(wallet, "close", plan_id, number)

    def settlement(self, plan_id: bytes, number: int) -> RoundSettlement:
        """A settlement."""
        return self.read_as(RoundSettlement, "settlementOf", plan_id, number)

    def line(self, plan_id: bytes, number: int, worker: ChecksumAddress) -> WorkLine:
        """A worker's line; zeros if there is none."""
        return self.read_as(WorkLine, "lineOf", plan_id, number, worker)

    def owned(self, plan_id: bytes, worker: ChecksumAddress) -> WorkOwned:
        """What a worker owns of a training."""
        return self.read_as(WorkOwned, "ownershipOf", plan_id, worker)
