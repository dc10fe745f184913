"""Tickets of enrolled verifiers, and which of them are drawn (contracts/incentives/ISortition.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.chain.node.connection import Connection


class Sortition(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Sortition", address)

    def enrol(self, wallet: Wallet, count: int) -> TxReceipt:
        """Lock the bond of ``count`` tickets more; they count from the next second on."""
        return wallet.send(self.function("enrol", count))

    def resign(self, wallet: Wallet, count: int) -> TxReceipt:
        """Give ``count`` tickets up; their bond leaves the vault's slow way."""
        return wallet.send(self.function("resign", count))

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
