"""Plans on a chain and the stakes of their workers (contracts/rounds/IWorkerBonds.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.rounds.plan_terms import PlanTerms
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError

_TERMS = ["bytes32"] * 3 + ["uint256"] * 3 + ["address"] + ["uint256"] * 11
"""Types of the terms, as wide as words."""


class Standing(IntEnum):
    """Where a worker of a plan is; the contract's numbers."""

    NONE = 0
    JOINED = 1
    LEAVING = 2
    LEFT = 3
    SLASHED = 4


@dataclass(frozen=True)
class WorkerBond:
    """A worker's stake in a plan; it can be accused until second ``until`` if it leaves."""

    standing: Standing
    until: int
    open: int
    """Accusations that aren't decided."""
    accusations: int
    quiet: int
    """Last second in which its last answer is refuted before its work is paid."""
    stake: int
    entries: int
    """Of the log, as the keeper says, when a worker that has gone was in no roster any more."""
    last: int
    """Of a leaving worker: the last second of ``until``, however often it has still to answer."""


class WorkerBonds(Binding):
    """The desk of plans and stakes."""

    def register(self, wallet: Wallet, terms: PlanTerms) -> bytes:
        """Register a plan and escrow all its pay; returns its id.

        Raises:
            Reverted: the terms break a rule, or the vault holds too little of the wallet's.
        """
        return bytes(self.emitted(self.transact(wallet, "register", astuple(terms)), "Registered")["id"])

    def registration(self, plan_id: bytes) -> bytes:
        """What the id of a plan is the hash of: ``store.put`` it, and sign with ``replace(plan, registration=...)``.

        Raises:
            ProtocolError: there is no such plan on this chain.
        """
        about = (self.connection.chain_id, self.address, self.read("submitterOf", plan_id))
        data = bytes(encode(["uint256", "address", "address", *_TERMS], [*about, *astuple(self.terms(plan_id))]))
        if keccak256(data) != plan_id:
            raise ProtocolError(f"no plan is registered here as {plan_id.hex()}: check the chain and the contract")
        return data

    def join(self, wallet: Wallet, plan_id: bytes) -> TxReceipt:
        """Join a plan with the stake of its terms; check them before (`plan_terms.require_terms`).

        Raises:
            Reverted: there is no such plan, the wallet is a worker already, or the vault holds too little of its money.
        """
        return self.transact(wallet, "join", plan_id)

    def leave(self, wallet: Wallet, plan_id: bytes) -> TxReceipt:
        """Begin to leave; the stake is free after the delay, by `depart`."""
        return self.transact(wallet, "startLeaving", plan_id)

    def depart(self, wallet: Wallet, plan_id: bytes, worker: ChecksumAddress | None = None) -> TxReceipt:
        """Free the stake of a worker that has left in peace; anybody may do it.

        Raises:
            Reverted: it is too early, or accusations are open.
        """
        return self.transact(wallet, "depart", plan_id, worker or wallet.address)

    def terms(self, plan_id: bytes) -> PlanTerms:
        """The terms of a plan."""
        return self.read_as(PlanTerms, "terms", plan_id)

    def bond(self, plan_id: bytes, worker: ChecksumAddress) -> WorkerBond:
        """A worker's stake in a plan."""
        return self.read_as(WorkerBond, "bond", plan_id, worker)
