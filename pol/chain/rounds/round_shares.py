"""Pay and ownership by proven work (contracts/rounds/RoundShares.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.round_demands import RoundDemand, TimedDemands
from pol.chain.rounds.signed_structs import Struct, claim_struct, phase_proof
from pol.commitments import merkle
from pol.incentives.work_shares import CountedClaim, encode_line
from pol.rounds.round_claim import RoundClaim


@dataclass(frozen=True)
class RoundSettlement:
    """One settlement of a plan; times in seconds, ``left`` in the smallest unit."""

    lines_until: int
    closes: int
    lines: int
    """Those that are neither paid nor void."""
    paying: bool
    units: int
    left: int


@dataclass(frozen=True)
class WorkLine:
    """What a worker counts in a settlement."""

    units: int
    count: int
    is_over: bool
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
            Reverted: a period hasn't passed and the wallet isn't the coordinator's, or all settlements have been.
        """
        return int(self.emitted(self.transact(wallet, "open", plan_id), "SettlementOpened")["settlement"])

    def post(self, wallet: Wallet, plan_id: bytes, number: int, claims: Sequence[CountedClaim]) -> TxReceipt:
        """Count claims of the wallet's worker, in order of round, phase and part.

        Raises:
            Reverted: it is too late, or one was counted before.
        """
        return self.transact(wallet, "post", plan_id, number, encode_line(claims))

    def demand_counted(
        self, wallet: Wallet, plan_id: bytes, number: int, worker: ChecksumAddress, index: int
    ) -> RoundDemand:
        """Demand to see a claim that a line counts.

        Raises:
            Reverted: there is none, or it is too late.
        """
        most = 2 * self.bond(plan_id)
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
        logged: Struct,
    ) -> TxReceipt:
        """Show it; ``logged`` is its entry (`signed_structs.logged_claim`).

        Raises:
            Reverted: it is late, or the line counts something else.
        """
        branch = merkle.branch([counted.leaf for counted in line], index)
        proof = phase_proof(commitment, claim.phase)
        arguments = (astuple(demand), number, index, branch, claim_struct(claim), proof, logged)
        return self.transact(wallet, "answerCounted", *arguments)

    def void(self, wallet: Wallet, plan_id: bytes, number: int, worker: ChecksumAddress) -> TxReceipt:
        """Take the line of a slashed worker out of a settlement; anybody may do it."""
        return self.transact(wallet, "void", plan_id, number, worker)

    def settle(self, wallet: Wallet, plan_id: bytes, number: int, worker: ChecksumAddress | None = None) -> TxReceipt:
        """Pay a line that stands; anybody may do it.

        Raises:
            Reverted: lines can still be disputed, an accusation of the worker is open, or it is paid.
        """
        return self.transact(wallet, "settle", plan_id, number, worker or wallet.address)

    def close(self, wallet: Wallet, plan_id: bytes, number: int) -> TxReceipt:
        """Return the pay of a settlement in which nobody has counted anything; anybody may do it."""
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

    def total_units(self, plan_id: bytes) -> int:
        """The units of all workers together."""
        return int(self.read("totalUnits", plan_id))
