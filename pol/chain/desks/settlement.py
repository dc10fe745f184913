"""The end of a task, and its payments (contracts/market/ISettlement.sol)."""

from __future__ import annotations

from dataclasses import astuple

from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.desks.task_registry import Terms


class Settlement(Binding):
    """The desk that closes tasks and pays."""

    def escrow_of(self, terms: Terms) -> int:
        """The escrow that a task with these terms locks. Raises Reverted: the price is above the bound of all tasks."""
        return int(self.read("escrowOf", astuple(terms)))

    def settle(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Close a task whose verdict survived its window and all disputes."""
        return self.transact(wallet, "settle", task_id)

    def claim_solver_default(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Remove a solver that missed its deadline; a new auction begins."""
        return self.transact(wallet, "claimSolverDefault", task_id)

    def claim_seat_default(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Remove a profiler or verifier that missed its deadline; records a verifier's rounds before."""
        return self.transact(wallet, "claimSeatDefault", task_id)

    def unserved(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Say, instead of a verdict, that the solver doesn't serve the states: the seat is drawn anew."""
        return self.transact(wallet, "unserved", task_id)

    def claim_unserved(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """End a training that two verifiers have called unserved while an objection was open."""
        return self.transact(wallet, "claimUnserved", task_id)

    def unserved_by(self, task_id: bytes) -> list[ChecksumAddress]:
        """The verifiers that have said that the present solver doesn't serve the states, two at most."""
        said = self.read("unservedBy", task_id, about=task_id)
        return [to_checksum_address(account) for account in said if int(account, 16)]

    def extend(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Restart the window of a verifier whose rounds the beacon hasn't given."""
        return self.transact(wallet, "extend", task_id)

    def abandon(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Close a task whose round the beacon hasn't given for two weeks."""
        return self.transact(wallet, "abandon", task_id)
