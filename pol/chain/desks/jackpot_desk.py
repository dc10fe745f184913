"""The jackpot's fund and its watch rewards (contracts/incentives/IJackpot.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


class JackpotFund(Binding, contract="Jackpot"):
    """The contract that pays watchers for found errors, from a fund that every task feeds."""

    def donate(self, wallet: Wallet, amount: int) -> TxReceipt:
        """Give free money to the fund."""
        return self.transact(wallet, "donate", amount)

    def watch(self, wallet: Wallet, task_id: bytes, ticket: int, commitment: bytes) -> TxReceipt:
        """Commit a drawn ticket to a found error, in the last seconds of the watch."""
        return self.transact(wallet, "watch", task_id, ticket, commitment)

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
        """Pay a watch reward to ``account``, once the task is closed; ``evidence`` by `verdicts.evidence`."""
        return self.transact(wallet, "claim", task_id, seating, account, ticket, index, salt, evidence)

    def sweep(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Return unclaimed watch rewards of a task to the fund."""
        return self.transact(wallet, "sweep", task_id)

    def shares(self) -> int:
        """Highest number of watch rewards of a task."""
        return int(self.read("shares"))

    def available(self) -> int:
        """Money that the fund can still reserve."""
        return int(self.read("available"))

    def tax(self, jackpot: int) -> int:
        """Tax that a task with this jackpot pays the fund."""
        return int(self.read("tax", jackpot))

    def commitment(self, task_id: bytes, seating: int, account: ChecksumAddress, ticket: int) -> bytes:
        """The commitment of a ticket; zeros if there is none, or once it is paid."""
        return bytes(self.read("commitments", task_id, seating, account, ticket, about=task_id))

    def reserved_of(self, task_id: bytes) -> int:
        """Reserve for the watch rewards of a task; zero once it is returned."""
        return int(self.read("reserves", task_id, about=task_id)[0])

    def catch_until(self, closed_at: int) -> int:
        """Last second to claim watch rewards of a task that was closed at second ``closed_at``."""
        return closed_at + int(self.read("catchWindow"))

    def commit_window(self) -> int:
        """Length of the window for commitments at the end of a watch, in seconds."""
        return int(self.read("commitWindow"))
