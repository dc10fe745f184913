"""The common part of the desks of verdicts and profiles: bonds, disputes and their settlement."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.contract_abi import ContractCall


class Ending(IntEnum):
    """The end of a dispute, as its desk knows it; the contract's numbers."""

    NONE = 0
    STOOD = 1
    FELL = 2
    SETTLED = 3


@dataclass(frozen=True)
class DeskDispute:
    """A dispute as its desk knows it; zeros if no challenge led to it."""

    task_id: bytes
    challenger: ChecksumAddress
    subject: int
    """The seating whose verdict is disputed, or the number of the profile."""
    ending: Ending
    bond: int

    @property
    def is_settled(self) -> bool:
        """Whether its bond is paid back or lost."""
        return self.ending is Ending.SETTLED


@dataclass(frozen=True)
class Disputable:
    """What of a task can be disputed now; ``subject`` is as in `DeskDispute`, None if there is none."""

    subject: int | None
    open: int
    """Disputes that aren't settled."""
    fell: bool
    """It has lost a dispute: the others are moot."""


@dataclass(frozen=True)
class DisputeEvents:
    """Names of a desk's events about disputes, and of their members for the dispute, its subject and its challenger."""

    challenged: str
    settled: str
    moot: str
    number: str
    subject: str
    challenger: str = "challenger"


class DisputeDesk(Announcements):
    """A desk that takes challenges; its game ends them."""

    EVENTS: ClassVar[DisputeEvents]

    @abstractmethod
    def dispute(self, number: int) -> DeskDispute:
        """A dispute; zeros if no challenge led to it."""

    @abstractmethod
    def disputable(self, task_id: bytes) -> Disputable:
        """The subject of a task that can be disputed now."""

    def bond_of(self, task_id: bytes) -> int:
        """Bond of the next challenger: every challenge doubles it, up to a challenger's gain (`payouts.bond_after`)."""
        return int(self.read("bondOf", task_id))

    def disputes(self, task_id: bytes) -> list[int]:
        """Numbers of the disputes for which the task waits, oldest first."""
        challenged = self.events(self.EVENTS.challenged, taskId=task_id)
        now = self.disputable(task_id) if challenged else None
        if now is None or now.subject is None or not now.open:
            return []
        own = [event for event in challenged if event[self.EVENTS.subject] == now.subject]
        numbers = [int(event[self.EVENTS.number]) for event in own]
        return [number for number in numbers if not self.dispute(number).is_settled]

    def settleable(self, task_id: bytes, challenger: ChecksumAddress) -> list[int]:
        """Numbers of a challenger's disputes that can be settled: ended by the game, or moot."""
        challenged = self.events(self.EVENTS.challenged, taskId=task_id, **{self.EVENTS.challenger: challenger})
        if not challenged:
            return []
        now, numbers = self.disputable(task_id), []
        for event in challenged:
            dispute = self.dispute(number := int(event[self.EVENTS.number]))
            is_moot = now.fell or dispute.subject != now.subject
            if not dispute.is_settled and (is_moot or dispute.ending is not Ending.NONE):
                numbers.append(number)
        return numbers

    def settle(self, wallet: Wallet, number: int) -> TxReceipt:
        """Pay out a dispute that the game has ended or that is moot; anybody may do it.

        Raises:
            Reverted: it is neither, or it is settled.
        """
        return self.transact(wallet, "settleDispute", number)

    def settle_once(self, wallet: Wallet, number: int) -> None:
        """As `settle`, but it may be settled already, or by another party in the same block."""
        wallet.send_once(self.function("settleDispute", number), lambda: self.dispute(number).is_settled)

    def _opening(self, task_id: bytes, header: bytes, payload: bytes) -> tuple[bytes, bytes, int]:
        """The first move and the highest acceptable bond: other challenges may come first."""
        # A challenger wins more than any bond, so three more doublings still pay.
        return header, payload, 8 * self.bond_of(task_id)

    def _challenged(self, wallet: Wallet, task_id: bytes, evidence: bytes, call: ContractCall) -> int:
        """Announce a challenge, so that nobody copies it, then make it in a later block; the number of its dispute."""
        self.announce_evidence(wallet, task_id, evidence)
        return int(self.emitted(wallet.send(call), self.EVENTS.challenged)[self.EVENTS.number])
