"""The fund, and who finds errors (contracts/incentives/IJackpot.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.chain.node.connection import Connection


class Jackpot(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Jackpot", address)

    def donate(self, wallet: Wallet, amount: int) -> TxReceipt:
        """Give free money to the fund."""
        return wallet.send(self.function("donate", amount))

    def watch(self, wallet: Wallet, task_id: bytes, ticket: int, commitment: bytes) -> TxReceipt:
        """Commit a drawn ticket to the error that it found, in the last seconds of the watch."""
        return wallet.send(self.function("watch", task_id, ticket, commitment))

    def claim(
        self,
        wallet: Wallet,
        task_id: bytes,
        seating: int,
        account: ChecksumAddress,
        ticket: int,
        index: int,
        salt: bytes,
        evidence: bytes,
    ) -> TxReceipt:
        """Have a catch paid to ``account``, once the task is closed; ``evidence`` by `verdicts.evidence`."""
        return wallet.send(self.function("claim", task_id, seating, account, ticket, index, salt, evidence))

    def sweep(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Give back to the fund what nobody has claimed in time."""
        return wallet.send(self.function("sweep", task_id))

    def shares(self) -> int:
        """Catches of a task that are paid, at most."""
        return int(self.read("shares"))

    def available(self) -> int:
        """What the fund could still reserve."""
        return int(self.read("available"))

    def tax(self, jackpot: int) -> int:
        """What a task with this jackpot pays the fund."""
        return int(self.read("tax", jackpot))

    def commitment(self, task_id: bytes, seating: int, account: ChecksumAddress, ticket: int) -> bytes:
        """What a ticket is committed to; zeros if it isn't, or once it is paid."""
        return bytes(self.read("commitments", task_id, seating, account, ticket))

    def reserved_of(self, task_id: bytes) -> int:
        """What is reserved for those who find errors in a task; zero once it is given back."""
        return int(self.read("reserves", task_id)[0])

    def catch_until(self, closed_at: int) -> int:
        """Last second to claim catches of a task that was closed at a time."""
        return closed_at + self.catch_window()

    def commit_window(self) -> int:
        """Last seconds of the watch in which commitments are taken."""
        return int(self.read("commitWindow"))

    def catch_window(self) -> int:
        """Seconds to claim catches, from when the task is closed."""
        return int(self.read("catchWindow"))
