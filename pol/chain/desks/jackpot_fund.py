"""The fund, and the rewards of those who find errors (contracts/incentives/IJackpot.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


class JackpotFund(Binding, contract="Jackpot"):
    """Pays watchers for errors from a fund that every task feeds."""

    def donate(self, wallet: Wallet, amount: int) -> TxReceipt:
        """Give free money to the fund."""
        return self.transact(wallet, "donate", amount)

    def watch(self, wallet: Wallet, task_id: bytes, ticket: int, commitment: bytes) -> TxReceipt:
        """Commit a drawn ticket to the error that it found, in the last seconds of the watch."""
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
        """Have a watch reward paid to ``account``, once the task is closed; ``evidence`` by `verdicts.evidence`."""
        return self.transact(wallet, "claim", task_id, seating, account, ticket, index, salt, evidence)

    def sweep(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Give back to the fund what nobody has claimed in time."""
        return self.transact(wallet, "sweep", task_id)

    def shares(self) -> int:
        """Watch rewards of a task that are paid, at most."""
        return int(self.read("shares"))

    def available(self) -> int:
        """What the fund could still reserve."""
        return int(self.read("available"))

    def tax(self, jackpot: int) -> int:
        """What a task with this jackpot pays the fund."""
        return int(self.read("tax", jackpot))

    def commitment(self, task_id: bytes, seating: int, account: ChecksumAddress, ticket: int) -> bytes:
        """The commitment of a ticket; zeros if there is none, or once it is paid."""
        return bytes(self.read("commitments", task_id, seating, account, ticket))

    def reserved_of(self, task_id: bytes) -> int:
        """What is reserved for the watch rewards of a task; zero once it is given back."""
        return int(self.read("reserves", task_id)[0])

    def catch_until(self, closed_at: int) -> int:
        """Last second to claim watch rewards of a task that was closed at a time."""
        return closed_at + int(self.read("catchWindow"))

    def commit_window(self) -> int:
        """Last seconds of the watch in which commitments are taken."""
        return int(self.read("commitWindow"))
