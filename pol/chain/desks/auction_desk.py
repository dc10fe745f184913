"""Solvers' reverse auction (contracts/incentives/IAuction.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


@dataclass(frozen=True)
class Bidding:
    """The progress of a round of the auction; times are last seconds."""

    bids: int
    revealed: int
    bid_until: int
    reveal_until: int
    closed: bool
    leader: ChecksumAddress


class Auction(Binding):
    """The auction, in rounds of sealed bids."""

    def last_round(self, desk: ChecksumAddress, task_id: bytes) -> bytes:
        """The id of the last round of a task; zero if there was none."""
        return bytes(self.read("lastRound", desk, task_id, about=task_id))

    def standing(self, round_id: bytes) -> Bidding:
        """The progress of a round."""
        fields = self.read("round", round_id, about=round_id)
        window, bids, bid_until, revealed, closed, leader = (fields[i] for i in (5, 7, 9, 10, 11, 12))
        return Bidding(bids, revealed, bid_until, bid_until + window, closed, leader)

    def has_bid(self, round_id: bytes, bidder: ChecksumAddress) -> bool:
        """Whether the bidder has a bid that isn't revealed."""
        return bool(self.read("sealedBid", round_id, bidder, about=round_id)[1])

    def admits(self, bidder: ChecksumAddress, work_units: int, promised: int) -> bool:
        """Whether the rules let a bidder promise this: a bid that they don't can't be revealed."""
        return bool(self.read("admits", bidder, work_units, promised))

    def bid_until(self, round_id: bytes) -> int:
        """Last second for bids; they are revealed in the window after it."""
        return int(self.read("round", round_id, about=round_id)[9])

    def bid(self, wallet: Wallet, round_id: bytes, commitment: bytes) -> TxReceipt:
        """Bid by a commitment (`pol.incentives.auction.commitment`); the stake is locked."""
        return self.transact(wallet, "bid", round_id, commitment)

    def reveal(
        self, wallet: Wallet, round_id: bytes, bidder: ChecksumAddress, price: int, promised: int, salt: bytes
    ) -> TxReceipt:
        """Reveal a bid. Raises Reverted: it isn't the committed bid, or the rules exclude it."""
        return self.transact(wallet, "reveal", round_id, bidder, price, promised, salt)

    def forfeit(self, wallet: Wallet, round_id: bytes, bidder: ChecksumAddress) -> TxReceipt:
        """Free the stake of a bid that nobody has revealed, less the penalty."""
        return self.transact(wallet, "forfeit", round_id, bidder)
