"""Tickets of enrolled verifiers (contracts/incentives/ISortition.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


class Sortition(Binding):
    """The register of tickets and their bonds."""

    def enrol(self, wallet: Wallet, count: int) -> TxReceipt:
        """Lock the bond of ``count`` more tickets; they count from the next second on."""
        return self.transact(wallet, "enrol", count)

    def resign(self, wallet: Wallet, count: int) -> TxReceipt:
        """Give ``count`` tickets up; their bond leaves the vault after the exit delay."""
        return self.transact(wallet, "resign", count)

    def tickets(self, account: ChecksumAddress, at: int) -> int:
        """An account's tickets in a draw whose round was fixed at second ``at``."""
        return int(self.read("tickets", account, at))

    def tickets_now(self, account: ChecksumAddress) -> int:
        """An account's tickets now."""
        return int(self.read("ticketsNow", account))

    def total(self, at: int) -> int:
        """All tickets in such a draw."""
        return int(self.read("total", at))

    def unit(self) -> int:
        """Bond of a ticket."""
        return int(self.read("unit"))

    def watchers(self) -> int:
        """Average number of tickets drawn to watch a seating."""
        return int(self.read("watchers"))
