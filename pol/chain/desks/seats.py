"""Seats of profilers and verifiers (contracts/market/ISeats.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.beacon_rounds import BeaconRounds

NO_COMMITMENT = bytes(32)
"""Of a profiler's claim: it has no duty to err."""


@dataclass(frozen=True)
class Seating:
    """One seat of one task, from the day that it is empty until its holder leaves it."""

    number: int
    verifies: bool
    round: int
    fixed_at: int
    until: int
    """Last second for claims; zero while the round has no seed."""
    seed: bytes
    best: ChecksumAddress
    rank: int
    commitment: bytes
    holder: ChecksumAddress
    duty_round: int
    duty_fixed_at: int
    stake: int
    left: bool

    @property
    def is_held(self) -> bool:
        """Whether somebody sits."""
        return bool(int(self.holder, 16)) and not self.left


class Seats(BeaconRounds):
    """The desk that draws profilers and verifiers."""

    def seating(self, task_id: bytes) -> Seating:
        """The seat of a task."""
        return self.read_as(Seating, "seating", task_id)

    def open_claims(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Take the seed of the round, recording it if nobody did."""
        return self.transact(wallet, "openClaims", task_id)

    def claim(self, wallet: Wallet, task_id: bytes, ticket: int, commitment: bytes = NO_COMMITMENT) -> TxReceipt:
        """Claim the seat with one of the wallet's tickets; the stake is locked from its free money.

        Raises:
            Reverted: the ticket doesn't count, or a claim of smaller rank is there.
        """
        return self.transact(wallet, "claim", task_id, ticket, commitment)

    def decide(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """After the window: the best claim sits down, or another round is drawn."""
        return self.transact(wallet, "decide", task_id)

    def duty_seed(self, task_id: bytes) -> bytes | None:
        """The seed that says whether the verifier has to err; None while the beacon has none."""
        seed = bytes(self.read("dutySeed", task_id))
        return seed if any(seed) else None
