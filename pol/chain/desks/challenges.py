"""Disputes about claims of verdicts (contracts/market/IChallenges.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum
from functools import cached_property

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from pol.chain.account.wallet import Wallet
from pol.chain.desks.dispute_desk import DeskDispute, Disputable, DisputeDesk, DisputeEvents, Ending
from pol.chain.desks.task_registry import Status, TaskRegistry
from pol.chain.desks.verdicts import PlacedClaim
from pol.claims.segment_claim import SecondLook


class ClaimChargeKind(IntEnum):
    """Which part of a claim is disputed; the contract's numbers."""

    REPLAY = 1
    DISTANCE = 2
    REFERENCE = 3
    LOOK_RERUN = 5
    LOOK_DISTANCE = 6
    RECEIPT = 7
    """In exact mode: the receipt of the last step."""
    BEFORE = 8
    """In exact mode: the state before that step."""


@dataclass(frozen=True)
class ClaimCharge:
    """A disputed part of a verdict. ``component`` is 0 where the kind is no distance."""

    index: int
    kind: ClaimChargeKind
    component: int
    rerun: int = 0
    """Of the second look."""


@dataclass(frozen=True)
class ChallengeCount:
    """Challenges of the verdict of a seating."""

    seating: int
    challenges: int
    open: int
    """Those that aren't settled."""
    fell: bool
    """The verifier has lost one of them: the others are moot."""


NO_PROGRAM: tuple[bytes, list[bytes]] = (bytes(32), [])
"""Stands for the program where none has to be proved."""


class Challenges(DisputeDesk):
    """The desk of disputes about verdicts."""

    EVENTS = DisputeEvents("Challenged", "DisputeSettled", "DisputeMoot", number="number", subject="seating")

    def challenge(
        self, wallet: Wallet, task_id: bytes, charge: ClaimCharge, placed: PlacedClaim, header: bytes, payload: bytes
    ) -> int:
        """Dispute a claim of the current verdict for the bond of the moment; returns the number of the dispute.

        header: of the task's program. payload: the challenger's own version of the disputed part, its first move. The
        challenge is announced a block before, so that nobody copies it.

        Raises:
            Reverted: the contract refuses the challenge, or the vault holds too little of the wallet's.
        """
        call = self.function("challenge", task_id, _charge(charge, placed), self._opening(task_id, header, payload))
        return self._challenged(wallet, task_id, charge_evidence(charge, payload), call)

    def challenge_second_look(
        self,
        wallet: Wallet,
        task_id: bytes,
        charge: ClaimCharge,
        placed: PlacedClaim,
        look: SecondLook,
        header: bytes,
        payload: bytes,
        program: tuple[bytes, list[bytes]] = NO_PROGRAM,
    ) -> int:
        """Dispute a rerun of a second look; returns the number of the dispute.

        program: of a LOOK_RERUN, the hash of the rerun's program with its inclusion path in `Terms.reruns`.

        Raises:
            Reverted: the contract refuses the challenge, or the vault holds too little of the wallet's.
        """
        reruns = [astuple(rerun) for rerun in look.reruns]
        opening = self._opening(task_id, header, payload)
        call = self.function("challengeLook", task_id, _charge(charge, placed), reruns, program, opening)
        return self._challenged(wallet, task_id, charge_evidence(charge, payload), call)

    def settle_by_proof(
        self, wallet: Wallet, number: int, charge: ClaimCharge, placed: PlacedClaim, shown: bytes
    ) -> int:
        """End a dispute about a replay whose segment is proved to lead to the state ``shown``; returns the gas.

        Raises:
            Reverted: it isn't proved, or it is another dispute's claim.
        """
        return int(self.transact(wallet, "settleByProof", number, _charge(charge, placed), shown)["gasUsed"])

    def dispute(self, number: int) -> DeskDispute:
        """A dispute about a verdict."""
        task_id, challenger, seating, _, ending, _, bond = self.read("dispute", number, about=number)
        return DeskDispute(task_id, challenger, seating, Ending(ending), bond)

    def charge(self, number: int) -> ClaimCharge:
        """The disputed part of a verdict; of a second look, any rerun: the game's parameters say which.

        Raises:
            OperationalError: the node has no record of it.
        """
        event = self.last_event(f"dispute {number} about a verdict", "Challenged", number=number)
        return ClaimCharge(int(event["index"]), ClaimChargeKind(event["kind"]), int(event["component"]))

    def contested(self, task_id: bytes) -> ChallengeCount:
        """Challenges of the verdict of the current seating."""
        return self.read_as(ChallengeCount, "contested", task_id, about=task_id)

    def disputable(self, task_id: bytes) -> Disputable:
        """The verdict that can be challenged. One that fell stays the task's until the next verifier sits."""
        task, contested = self._registry.task(task_id), self.contested(task_id)
        seating = task.seating if task.status is Status.CONTESTED else None
        return Disputable(seating, contested.open, contested.fell)

    @cached_property
    def _registry(self) -> TaskRegistry:
        return TaskRegistry(self.connection, self.read("registry"))


def charge_evidence(charge: ClaimCharge, payload: bytes) -> bytes:
    """The evidence of a challenge whose opening has this ``payload`` (`announcements.announcement`)."""
    told = (charge.index, int(charge.kind), charge.component, charge.rerun, keccak(payload))
    return keccak(encode(["uint32", "uint8", "uint8", "uint32", "bytes32"], told))


def _charge(charge: ClaimCharge, placed: PlacedClaim) -> tuple[object, ...]:
    return (charge.index, *astuple(placed), int(charge.kind), charge.component, charge.rerun)
