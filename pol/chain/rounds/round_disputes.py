"""Disputes about the execution of signed claims (contracts/rounds/RoundDisputes.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3 import Web3
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.desks.dispute_desk import Ending
from pol.chain.rounds.signed_structs import signed_claim
from pol.commitments.keccak import keccak256
from pol.rounds.log.log_entries import ClaimEntry


@dataclass(frozen=True)
class RoundDispute:
    """A dispute about a claim; zeros if there is none."""

    plan_id: bytes
    worker: ChecksumAddress
    challenger: ChecksumAddress
    ending: Ending
    bond: int


class RoundDisputes(Announcements):
    """The desk of disputes about claims; the worker is the asserter."""

    def dispute(self, wallet: Wallet, plan_id: bytes, entry: ClaimEntry, header: bytes, payload: bytes) -> int:
        """Dispute the execution of a claim for the bond of the moment; returns the number of the dispute.

        header: of the claim's program. payload: the state roots of the wallet's own execution, its first move. It is
        announced a block before, so that nobody copies it.

        Raises:
            Reverted: the worker can't be accused (any more), or the vault holds too little of the wallet's money.
        """
        self.announce_evidence(wallet, plan_id, dispute_evidence(entry.claim.digest, payload))
        most = 8 * self.bond_of(plan_id, entry.worker)
        call = self.function("dispute", plan_id, signed_claim(entry), (header, payload, most))
        return int(self.emitted(wallet.send(call), "ClaimDisputed")["number"])

    def settle(self, wallet: Wallet, number: int) -> TxReceipt:
        """Pay out a dispute that the game has ended, or whose worker has lost its stake otherwise; anybody may do it.

        Raises:
            Reverted: it goes on, or is settled.
        """
        return self.transact(wallet, "settle", number)

    def bond_of(self, plan_id: bytes, worker: str) -> int:
        """The bond of the next dispute about a claim of this worker."""
        return int(self.read("bondOf", plan_id, Web3.to_checksum_address(worker)))

    def dispute_of(self, number: int) -> RoundDispute:
        """A dispute."""
        return self.read_as(RoundDispute, "disputeOf", number)


def dispute_evidence(claim: bytes, payload: bytes) -> bytes:
    """The evidence of a dispute whose opening has this ``payload`` (`announcements.announcement`)."""
    return keccak256(encode(["bytes32", "bytes32"], [claim, keccak256(payload)]))
