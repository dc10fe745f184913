"""Seats of profilers and verifiers (contracts/market/ISeats.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.beacon_rounds import BeaconRounds

NO_COMMITMENT = bytes(32)
"""The commitment of a profiler, which has no duty to err."""


@dataclass(frozen=True)
class Seating:
    """One seat of one task, from its vacancy until its holder leaves it."""

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
        """Whether somebody holds the seat."""
        return bool(int(self.holder, 16)) and not self.left


class Seats(BeaconRounds):
    """The desk that draws profilers and verifiers."""

    def seating(self, task_id: bytes) -> Seating:
        """The present seat of a task."""
        return self.read_as(Seating, "seating", task_id, about=task_id)

    def open_claims(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Start the window for claims with the seed of the round; records the seed if nobody did."""
        return self.transact(wallet, "openClaims", task_id)

    def claim(self, wallet: Wallet, task_id: bytes, ticket: int, commitment: bytes = NO_COMMITMENT) -> TxReceipt:
        """Claim the seat with one of the wallet's tickets; locks the stake from its free money.

        Raises:
            Reverted: the ticket doesn't count, or another claim has a better rank.
        """
        return self.transact(wallet, "claim", task_id, ticket, commitment)

    def decide(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """End the window: the best claim takes the seat, or another round is drawn."""
        return self.transact(wallet, "decide", task_id)

    def duty_seed(self, task_id: bytes) -> bytes | None:
        """The seed that decides whether the verifier has to err; None while the beacon has none."""
        seed = bytes(self.read("dutySeed", task_id))
        return seed if any(seed) else None
