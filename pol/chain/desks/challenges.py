"""Disputes about claims of verdicts (contracts/market/IChallenges.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum
from functools import cached_property

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak
from web3.contract.contract import ContractFunction
from web3.logs import DISCARD
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.desks.task_registry import Status, TaskRegistry
from pol.chain.desks.verdicts import Placed
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import SecondLook
from pol.errors import OperationalError


class ChargeKind(IntEnum):
    """What is said to be wrong; the contract's numbers."""

    REPLAY = 1
    DISTANCE = 2
    REFERENCE = 3
    LOOK_RERUN = 5
    LOOK_DISTANCE = 6


@dataclass(frozen=True)
class ClaimCharge:
    """What is disputed of a verdict. ``component`` is 0 for a replay or the end of a rerun."""

    index: int
    kind: ChargeKind
    component: int
    rerun: int = 0
    """Of the second look."""


class Ending(IntEnum):
    """What a desk knows of how a dispute has ended; the contract's numbers."""

    NONE = 0
    STOOD = 1
    FELL = 2
    SETTLED = 3


@dataclass(frozen=True)
class Dispute:
    """What the market knows about a dispute of the game."""

    task_id: bytes
    challenger: ChecksumAddress
    seating: int
    """Whose verdict it is about."""
    index: int
    ending: Ending
    of_replay: bool
    bond: int

    @property
    def is_settled(self) -> bool:
        """Whether its bond is free or lost."""
        return self.ending is Ending.SETTLED


@dataclass(frozen=True)
class Contested:
    """Challenges of the verdict of a seating."""

    seating: int
    challenges: int
    open: int
    """Those that aren't settled."""
    fell: bool
    """The verifier has lost one of them: the others are moot."""


NO_PROGRAM: tuple[bytes, list[bytes]] = (bytes(32), [])
"""Where no rerun's program has to be proved."""


class Challenges(Announcements):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Challenges", address)

    def challenge(
        self, wallet: Wallet, task_id: bytes, charge: ClaimCharge, placed: Placed, header: bytes, payload: bytes
    ) -> int:
        """Dispute a claim of the current verdict for the bond of the moment; returns the number of the dispute.

        ``payload`` is the challenger's own version of what it disputes: its first move. ``header`` is that of the
        task's program. The challenge is announced a block before, so that nobody copies it.

        Raises:
            Reverted: the contract refuses the challenge, or the vault holds too little of the wallet's.
        """
        opening = (header, payload, self._most_bond(task_id))
        self.bring(wallet, task_id, charge_evidence(charge, payload))
        return self._number(wallet, self.function("challenge", task_id, _charge(charge, placed), opening))

    def challenge_look(
        self,
        wallet: Wallet,
        task_id: bytes,
        charge: ClaimCharge,
        placed: Placed,
        look: SecondLook,
        header: bytes,
        payload: bytes,
        program: tuple[bytes, list[bytes]] = NO_PROGRAM,
    ) -> int:
        """Dispute a rerun of a second look; `LOOK_RERUN` takes its program with its inclusion path in `Terms.reruns`.

        Raises:
            Reverted: the contract refuses the challenge, or the vault holds too little of the wallet's.
        """
        reruns = [(rerun.end, rerun.distances) for rerun in look.reruns]
        opening = (header, payload, self._most_bond(task_id))
        self.bring(wallet, task_id, charge_evidence(charge, payload))
        call = self.function("challengeLook", task_id, _charge(charge, placed), reruns, program, opening)
        return self._number(wallet, call)

    def settle_by_proof(self, wallet: Wallet, number: int, charge: ClaimCharge, placed: Placed, shown: bytes) -> int:
        """End a dispute about a replay whose segment is proved to lead to the state ``shown``; returns the gas.

        Raises:
            Reverted: it isn't proved, or it is another dispute's claim.
        """
        call = self.function("settleByProof", number, _charge(charge, placed), shown)
        return int(wallet.send(call)["gasUsed"])

    def bond_of(self, task_id: bytes) -> int:
        """What the next challenger of the current verdict puts up.

        Every challenge of the verdict has doubled it, up to what a challenger wins (`payouts.bond_after`).
        """
        return int(self.read("bondOf", task_id))

    def dispute(self, number: int) -> Dispute:
        """What the market knows about a dispute; zeros if it doesn't know it."""
        task_id, challenger, seating, index, ending, of_replay, bond = self.read("dispute", number)
        return Dispute(task_id, challenger, seating, index, Ending(ending), of_replay, bond)

    def charge(self, number: int) -> ClaimCharge:
        """What a dispute is about; of a second look, any rerun: the game's parameters say which.

        Raises:
            OperationalError: the node has no record of it.
        """
        events = self.events("Challenged", number=number)
        if not events:
            raise OperationalError(f"the node knows no dispute {number} about a verdict; is it in sync?")
        event = events[0]
        return ClaimCharge(int(event["index"]), ChargeKind(event["kind"]), int(event["component"]))

    def contested(self, task_id: bytes) -> Contested:
        """Challenges of the verdict of the current seating."""
        return Contested(*self.read("contested", task_id))

    def disputes(self, task_id: bytes) -> list[int]:
        """Numbers of the disputes that the current verdict waits for, oldest first."""
        challenged = self.events("Challenged", taskId=task_id, seating=self._live(task_id))
        numbers = [int(event["number"]) for event in challenged]
        return [number for number in numbers if not self.dispute(number).is_settled]

    def settleable(self, task_id: bytes, challenger: ChecksumAddress) -> list[int]:
        """Numbers of a challenger's disputes that the game has ended, or whose verdict fell in another one."""
        live, fell, numbers = self._live(task_id), self.contested(task_id).fell, []
        for event in self.events("Challenged", taskId=task_id, challenger=challenger):
            dispute = self.dispute(number := int(event["number"]))
            is_moot = fell or dispute.seating != live
            if not dispute.is_settled and (is_moot or dispute.ending is not Ending.NONE):
                numbers.append(number)
        return numbers

    def settle(self, wallet: Wallet, number: int) -> TxReceipt:
        """Pay out what a dispute was about: anybody does it, once the game has ended it or it is moot.

        Raises:
            Reverted: it is neither, or somebody has done it.
        """
        return wallet.send(self.function("settleDispute", number))

    def _live(self, task_id: bytes) -> int | None:
        """The seating whose verdict can be challenged. One whose verdict fell stays the task's until the next sits."""
        task = self._registry.task(task_id)
        return task.seating if task.status is Status.CONTESTED else None

    @cached_property
    def _registry(self) -> TaskRegistry:
        return TaskRegistry(self.connection, self.read("registry"))

    def _most_bond(self, task_id: bytes) -> int:
        # The bond never exceeds what a challenger wins, so whoever pays this one can pay the next.
        return 8 * self.bond_of(task_id)

    def _number(self, wallet: Wallet, call: ContractFunction) -> int:
        receipt = wallet.send(call)
        (event,) = self.contract.events.Challenged().process_receipt(receipt, errors=DISCARD)
        return int(event["args"]["number"])


def charge_evidence(charge: ClaimCharge, payload: bytes) -> bytes:
    """What is announced before a challenge whose opening has this ``payload`` (`announcements.announcement`)."""
    told = (charge.index, int(charge.kind), charge.component, charge.rerun, keccak(payload))
    return keccak(encode(["uint32", "uint8", "uint8", "uint32", "bytes32"], told))


def _charge(charge: ClaimCharge, placed: Placed) -> tuple[object, ...]:
    entries = list(placed.entries)
    told = (charge.index, astuple(placed.claim), placed.look, entries)
    return (*told, int(charge.kind), charge.component, charge.rerun)
