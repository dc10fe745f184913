"""Tasks, their terms, and their state (contracts/market/ITaskRegistry.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum
from functools import cached_property

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.outbox_journal import IntentState
from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.contract.structs import decoded


class Status(IntEnum):
    """The status of a task (docs/spec/market.md, "Statuses")."""

    NONE = 0
    PROFILING = 1
    BIDDING = 2
    TRAINING = 3
    COMMITTED = 4
    VERIFYING = 5
    WATCHED = 6
    CONTESTED = 7
    CLOSED = 8


class TaskOutcome(IntEnum):
    """How a closed task ended."""

    NONE = 0
    ACCEPTED = 1
    REJECTED = 2
    CANCELLED = 3
    ABANDONED = 4
    """The beacon was silent for too long."""


@dataclass(frozen=True)
class Terms:
    """The terms of a task; hashes have 32 bytes, windows and clock are seconds, amounts units of the vault's asset."""

    program: bytes
    constants: bytes
    initial_state: bytes
    document: bytes
    reruns: bytes
    steps: int
    interval: int
    draws: int
    work_units: int
    unit_price: int
    second_price: int
    solver_stake: int
    verifier_stake: int
    bond: int
    verifier_fee: int
    jackpot: int
    rerun_count: int
    profiled: int
    margin: int
    looks: int
    look_margin: int
    profile_window: int
    bid_window: int
    seat_window: int
    training_window: int
    verification_window: int
    watch_window: int
    disclosure_window: int
    challenge_window: int
    clock: int

    @property
    def is_exact(self) -> bool:
        """Whether the training has to be canonical, bit for bit: without a profile."""
        return self.margin == 0

    @property
    def maximum_price(self) -> int:
        """The highest pay of a solver: work times price, rounded up."""
        return -(-self.work_units * self.unit_price // (1 << 32))


@dataclass(frozen=True)
class MarketTask:
    """The state of a task, shared by all desks."""

    submitter: ChecksumAddress
    status: Status
    outcome: TaskOutcome
    deadline: int
    solver: ChecksumAddress
    began: int
    holder: ChecksumAddress
    """Of the seat: profiler or verifier."""
    seating: int
    price: int
    closed: int

    @property
    def is_seated(self) -> bool:
        """Whether somebody holds the seat."""
        return bool(int(self.holder, 16))


class TaskRegistry(Binding):
    """The desk that opens tasks and keeps their state."""

    def task(self, task_id: bytes) -> MarketTask:
        """The state of a task."""
        return self.read_as(MarketTask, "task", task_id, about=task_id)

    def terms(self, task_id: bytes) -> Terms:
        """The terms of a task. Its id binds them, so they are read once."""
        found = self._terms.get(task_id) or self.read_as(Terms, "terms", task_id, about=task_id)
        if any(found.document):
            self._terms[task_id] = found
        return found

    @cached_property
    def _terms(self) -> dict[bytes, Terms]:
        return {}

    def nonce(self, submitter: ChecksumAddress) -> int:
        """The number of the next task of a submitter; its id depends on it."""
        return int(self.read("nonces", submitter))

    def submit(self, wallet: Wallet, terms: Terms) -> bytes:
        """Open a task; locks its escrow from the wallet's free money in the vault. Returns its id.

        Raises:
            Reverted: the terms break a rule, or the vault holds too little.
        """
        return bytes(self.emitted(self.transact(wallet, "submit", astuple(terms)), "TaskSubmitted")["taskId"])

    def begun(self, wallet: Wallet) -> list[Terms]:
        """Terms of the wallet's submissions that are under way, or that a killed process hasn't told of."""
        calls = [i.data for i in wallet.journal.intents(IntentState.OPEN) if i.to == self.address]
        found = [self.abi.arguments(data) for data in calls]
        return [decoded(Terms, arguments["terms_"]) for name, arguments in found if name == "submit"]

    def cancel(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Cancel a task that has no solver."""
        return self.transact(wallet, "cancel", task_id)

    def award(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """End a round of the auction: it has a winner, or a new round begins."""
        return self.transact(wallet, "award", task_id)
