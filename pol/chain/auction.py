"""Solvers' reverse auction (contracts/incentives/IAuction.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.binding import Binding
from pol.chain.connection import Connection
from pol.chain.wallet import Wallet


class Auction(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Auction", address)

    def last_round(self, desk: ChecksumAddress, task_id: bytes) -> bytes:
        """The id of the last round of a task; zero if there was none."""
        return bytes(self.read("lastRound", desk, task_id))

    def bid_until(self, round_id: bytes) -> int:
        """Last second for bids; they are revealed in the window after it."""
        return int(self.read("round", round_id)[9])

    def bid(self, wallet: Wallet, round_id: bytes, commitment: bytes) -> TxReceipt:
        """Bid by a commitment (`pol.incentives.auction.commitment`); the stake is locked."""
        return wallet.send(self.function("bid", round_id, commitment))

    def reveal(
        self, wallet: Wallet, round_id: bytes, bidder: ChecksumAddress, price: int, promised: int, salt: bytes
    ) -> TxReceipt:
        """Reveal a bid.

        Raises:
            Reverted: it is another one, or can't win by the rules.
        """
        return wallet.send(self.function("reveal", round_id, bidder, price, promised, salt))

    def forfeit(self, wallet: Wallet, round_id: bytes, bidder: ChecksumAddress) -> TxReceipt:
        """Free the stake of a bid that nobody has revealed, less what it costs."""
        return wallet.send(self.function("forfeit", round_id, bidder))
