"""Tickets of enrolled verifiers (contracts/incentives/ISortition.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


class Sortition(Binding):
    """The register of tickets and their bonds."""

    def enrol(self, wallet: Wallet, count: int) -> TxReceipt:
        """Lock the bond of ``count`` tickets more; they count from the next second on."""
        return self.transact(wallet, "enrol", count)

    def resign(self, wallet: Wallet, count: int) -> TxReceipt:
        """Give ``count`` tickets up; their bond leaves the vault's slow way."""
        return self.transact(wallet, "resign", count)

    def tickets(self, account: ChecksumAddress, at: int) -> int:
        """Tickets that count in a draw whose round was fixed at second ``at``."""
        return int(self.read("tickets", account, at))

    def tickets_now(self, account: ChecksumAddress) -> int:
        """Tickets as of now."""
        return int(self.read("ticketsNow", account))

    def total(self, at: int) -> int:
        """Tickets of all that count in such a draw."""
        return int(self.read("total", at))

    def unit(self) -> int:
        """What a ticket locks."""
        return int(self.read("unit"))

    def watchers(self) -> int:
        """Tickets that watch a seating, on average."""
        return int(self.read("watchers"))
