"""The contracts of rounds on one chain: a vault of their own, five desks, and a court."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import get_type_hints

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3 import Web3
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.contract.binding import read_together
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.dispute_desk import Ending
from pol.chain.desks.vault import StakeVault
from pol.chain.desks.vault_ledger import whole_vault
from pol.chain.node.connection import Connection
from pol.chain.rounds.round_demands import RoundDemands
from pol.chain.rounds.round_evidence import RoundEvidence
from pol.chain.rounds.round_shares import RoundShares
from pol.chain.rounds.signed_structs import signed_claim
from pol.chain.rounds.worker_bonds import WorkerBonds
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


@dataclass(frozen=True)
class RoundAddresses:
    """Addresses of the contracts of rounds."""

    vault: ChecksumAddress
    bonds: ChecksumAddress
    disputes: ChecksumAddress
    evidence: ChecksumAddress
    demands: ChecksumAddress
    shares: ChecksumAddress
    game: ChecksumAddress


@dataclass(frozen=True)
class RoundContracts:
    """The bindings of the contracts of rounds; the members are those of `RoundAddresses`."""

    vault: StakeVault
    bonds: WorkerBonds
    disputes: RoundDisputes
    evidence: RoundEvidence
    demands: RoundDemands
    shares: RoundShares
    game: DisputeGame

    @classmethod
    def at(cls, connection: Connection, addresses: RoundAddresses, block: int) -> RoundContracts:
        """Bind the contracts; no event is older than ``block``."""
        kinds = get_type_hints(cls)
        bindings = {name: kinds[name](connection, address) for name, address in asdict(addresses).items()}
        made = cls(**bindings)
        read_together(bindings.values(), block, made.whole)
        return made

    def whole(self, block: int) -> Iterator[tuple[str, int, int]]:
        """The events that have to be there at a block (`EventCache`)."""
        yield from whole_vault(self.vault, block)
        yield "disputes", *self.game.whole(block)
