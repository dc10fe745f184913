"""Objections to segments of trainings with thresholds (contracts/market/ICounterclaims.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak

from pol.chain.account.wallet import Wallet
from pol.chain.contract.structs import decoded
from pol.chain.desks.challenges import NO_PROGRAM, ClaimCharge, ClaimChargeKind
from pol.chain.desks.dispute_desk import DeskDispute, Disputable, DisputeDesk, DisputeEvents, Ending
from pol.chain.desks.verdicts import entry, look_hash
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim


@dataclass(frozen=True)
class Counterclaim:
    """An objector's claim about a segment, which the rule of the task rejects."""

    task_id: bytes
    objector: ChecksumAddress
    began: int
    """When the solver was chosen whose log it is about."""
    entry: bytes
    until: int
    """Last second in which it can be contested."""
    open: int
    """Contests that aren't settled."""
    fell: bool
    """It has lost one of them."""
    concluded: bool
    bond: int
    answered: bool
    """The solver has contested it."""


@dataclass(frozen=True)
class SaidClaim:
    """A counterclaim as it was posted."""

    number: int
    claim: SegmentClaim
    look: SecondLook | None


class Counterclaims(DisputeDesk):
    """The desk of objections by thresholds; the objector is the asserter, and anybody contests what it says."""

    EVENTS = DisputeEvents("Contested", "ContestSettled", "ContestMoot", number="dispute", subject="number")

    def counterclaim(
        self,
        wallet: Wallet,
        task_id: bytes,
        claim: SegmentClaim,
        log_proof: tuple[list[bytes], list[bytes]],
        look: SecondLook | None,
        most_bond: int,
    ) -> int:
        """Assert that the rule rejects a segment; returns the number of the counterclaim.

        It is announced a block before, so that nobody copies it.

        Raises:
            Reverted: the contract refuses it, or the vault holds too little of the wallet's.
        """
        said = entry(claim, look_hash(look))
        self.announce_evidence(wallet, task_id, keccak(said))
        arguments = (task_id, astuple(claim), log_proof, _reruns(look), most_bond)
        receipt = wallet.send(self.function("counterclaim", *arguments))
        return int(self.emitted(receipt, "Counterclaimed")["number"])

    def contest(
        self,
        wallet: Wallet,
        said: SaidClaim,
        charge: ClaimCharge,
        header: bytes,
        payload: bytes,
        program: tuple[bytes, list[bytes]] = NO_PROGRAM,
    ) -> int:
        """Dispute a part of a counterclaim, a solver first for its objector's bond; returns the number of the dispute.

        header, payload, program: as in `Challenges.challenge_second_look`.

        Raises:
            Reverted: the contract refuses it, or the vault holds too little of the wallet's.
        """
        kind, rerun = int(charge.kind), charge.rerun
        charged: tuple[object, ...] = (0, astuple(said.claim), look_hash(said.look), [], kind, charge.component, rerun)
        of_look = charge.kind in (ClaimChargeKind.LOOK_RERUN, ClaimChargeKind.LOOK_DISTANCE)
        look = _reruns(said.look) if of_look else []
        about = self.counterclaimed(said.number)
        call = self.function("contest", said.number, charged, look, program, (header, payload, 8 * about.bond))
        return self._challenged(wallet, about.task_id, contest_evidence(said.number, charge, payload), call)

    def conclude(self, wallet: Wallet, number: int) -> int:
        """End a counterclaim that nobody can contest any more, or that is moot; returns the gas.

        Raises:
            Reverted: it can be contested, waits for disputes, or is decided.
        """
        return int(self.transact(wallet, "conclude", number)["gasUsed"])

    def counterclaimed(self, number: int) -> Counterclaim:
        """A counterclaim; zeros if there is none."""
        return self.read_as(Counterclaim, "counterclaimed", number, about=number)

    def open_for(self, task_id: bytes) -> list[int]:
        """Numbers of the counterclaims that aren't concluded, oldest first, by events alone."""
        concluded = {int(event["number"]) for event in self.events("CounterclaimConcluded", taskId=task_id)}
        numbers = (int(event["number"]) for event in self.events("Counterclaimed", taskId=task_id))
        return [number for number in numbers if number not in concluded]

    def said(self, number: int) -> SaidClaim:
        """A counterclaim as it was posted. Raises OperationalError: the node has no record of it."""
        event = self.last_event(f"counterclaim {number}", "Counterclaimed", number=number)
        claim, reruns = decoded(SegmentClaim, event["claim"]), decoded(tuple[Rerun, ...], event["look"])
        return SaidClaim(number, claim, SecondLook(claim.segment, reruns) if reruns else None)

    def charge(self, dispute: int) -> ClaimCharge:
        """The disputed part of a counterclaim. Raises OperationalError: the node has no record of it."""
        event = self.last_event(f"dispute {dispute} about a counterclaim", "Contested", dispute=dispute)
        return ClaimCharge(0, ClaimChargeKind(event["kind"]), int(event["component"]), int(event["rerun"]))

    def dispute(self, number: int) -> DeskDispute:
        """A dispute about a counterclaim."""
        about, challenger, ending, bond = self.read("contests", number, about=number)
        task_id = self.counterclaimed(about).task_id if about else bytes(32)
        return DeskDispute(task_id, challenger, about, Ending(ending), bond)

    def disputable(self, task_id: bytes) -> Disputable:
        """The oldest counterclaim that is open."""
        for number in self.open_for(task_id):
            found = self.counterclaimed(number)
            return Disputable(number, found.open, found.fell)
        return Disputable(None, 0, False)

    def disputes(self, task_id: bytes) -> list[int]:
        """Numbers of the disputes that aren't settled, about any counterclaim of the task, oldest first."""
        numbers = [int(event["dispute"]) for event in self.events("Contested", taskId=task_id)]
        return [number for number in numbers if not self.dispute(number).is_settled]

    def settleable(self, task_id: bytes, challenger: ChecksumAddress) -> list[int]:
        """As `DisputeDesk.settleable`."""
        return [number for number in self.disputes(task_id) if self._is_due(number, challenger)]

    def is_moot(self, number: int) -> bool:
        """Whether a dispute decides nothing any more."""
        known = self.dispute(number)
        about = self.counterclaimed(known.subject)
        return (about.fell and known.ending is not Ending.FELL) or (about.concluded and not about.fell)

    def _is_due(self, number: int, challenger: ChecksumAddress) -> bool:
        known = self.dispute(number)
        return known.challenger == challenger and (known.ending is not Ending.NONE or self.is_moot(number))


def contest_evidence(number: int, charge: ClaimCharge, payload: bytes) -> bytes:
    """The evidence of a contest whose opening has this ``payload`` (`announcements.announcement`)."""
    told = (number, int(charge.kind), charge.component, charge.rerun, keccak(payload))
    return keccak(encode(["uint256", "uint8", "uint8", "uint32", "bytes32"], told))


def _reruns(look: SecondLook | None) -> list[tuple[object, ...]]:
    return [] if look is None else [astuple(rerun) for rerun in look.reruns]
