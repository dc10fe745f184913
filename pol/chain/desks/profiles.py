"""Profiles: posted, challenged, concluded (contracts/market/IProfiles.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.structs import decoded
from pol.chain.desks.dispute_desk import DeskDispute, Disputable, DisputeDesk, DisputeEvents
from pol.claims.segment_claim import Rerun, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind
from pol.verification.profile.profile_claim import Portion, ProfileClaim

WITNESS = "(uint32,(bytes32,uint256[3]),bytes32[])"
ProvedProgram = tuple[bytes, list[bytes]]
"""A program's hash and its inclusion path in `Terms.reruns`."""


@dataclass(frozen=True)
class Witness:
    """A rerun with the proof that it has this index under the posted root; the contract's struct ``Witness``."""

    index: int
    rerun: Rerun
    path: tuple[bytes, ...]


@dataclass(frozen=True)
class ProfileStanding:
    """The present profile of a task; zeros but for ``number`` if there is none."""

    verifier: ChecksumAddress
    deadline: int
    number: int
    thresholds: Three
    challenges: int
    open: int
    fell: bool
    concluded: bool
    portions: bytes
    rerun_root: bytes

    @property
    def is_posted(self) -> bool:
        """Whether there is a profile now."""
        return bool(int(self.verifier, 16))


@dataclass(frozen=True)
class PostedProfile:
    """A posted profile in full."""

    number: int
    verifier: ChecksumAddress
    portions: tuple[Portion, ...]
    root: bytes
    witnesses: tuple[Witness, Witness, Witness]
    thresholds: Three
    digest: bytes
    deadline: int


class Profiles(DisputeDesk):
    """The desk of profiles and of disputes about them."""

    EVENTS = DisputeEvents(
        "ProfileChallenged", "ProfileDisputeSettled", "ProfileDisputeMoot", number="dispute", subject="profile"
    )

    def standing(self, task_id: bytes) -> ProfileStanding:
        """The present profile of a task."""
        return self.read_as(ProfileStanding, "profile", task_id, about=task_id)

    def posted(self, task_id: bytes) -> PostedProfile:
        """The present profile of a task with the content of its event. Raises OperationalError: there is none."""
        standing = self.standing(task_id)
        events = self.events("ProfilePosted", taskId=task_id, profile=standing.number)
        if not standing.is_posted or not events:
            raise OperationalError("the task has no profile yet; try again later")
        event = events[-1]
        return PostedProfile(
            number=standing.number,
            verifier=standing.verifier,
            portions=tuple(decoded(Portion, portion) for portion in event["portions"]),
            root=bytes(event["rerunRoot"]),
            witnesses=decoded(tuple[Witness, Witness, Witness], event["witnesses"]),
            thresholds=standing.thresholds,
            digest=bytes(event["digest"]),
            deadline=standing.deadline,
        )

    def post(self, wallet: Wallet, task_id: bytes, claim: ProfileClaim, digest: bytes) -> TxReceipt:
        """Post a measured profile; the contract computes the thresholds from the witnesses."""
        log = claim.log
        witnesses = [astuple(witness_of(claim, log, index)) for index in claim.witnesses]
        return self.transact(wallet, "post", task_id, _tuples(claim.portions), log.root(), witnesses, digest)

    def challenge(
        self,
        wallet: Wallet,
        task_id: bytes,
        portions: Sequence[Portion],
        charge: ProfileCharge,
        header: bytes,
        payload: bytes,
        rerun: Witness | None = None,
        program: ProvedProgram | None = None,
    ) -> int:
        """Dispute one part of the posted profile for the bond of the moment; returns the number of the dispute.

        payload: the challenger's own version, its first move. rerun: with its proof, for RERUN and DISTANCE. program:
        of a RERUN, which has this ``header``. The challenge is announced a block before, so that nobody copies it.

        Raises:
            ProtocolError: UNDERSTATED is no dispute (`convict`), or the proofs are missing.
            Reverted: the contract refuses the challenge.
        """
        opening, told = self._opening(task_id, header, payload), _tuples(portions)
        match charge.kind:
            case ProfileChargeKind.PORTION:
                call = self.function("challengePortion", task_id, told, charge.index, opening)
            case ProfileChargeKind.RERUN if rerun and program:
                call = self.function("challengeRerun", task_id, told, astuple(rerun), program, opening)
            case ProfileChargeKind.DISTANCE if rerun:
                call = self.function("challengeDistance", task_id, told, astuple(rerun), charge.component, opening)
            case ProfileChargeKind.REFERENCE:
                call = self.function("challengeReference", task_id, told, charge.index, charge.component, opening)
            case _:
                raise ProtocolError(f"{charge.kind.name} is no dispute, or its proofs are missing")
        return self._challenged(wallet, task_id, charge_evidence(charge, payload), call)

    def convict(
        self, wallet: Wallet, task_id: bytes, portions: Sequence[Portion], rerun: Witness, component: Component
    ) -> TxReceipt:
        """Void the profile by a rerun that needs a higher threshold than the posted one, or that allows none.

        The rerun is announced in an earlier block (`conviction_evidence`).

        Raises:
            Reverted: it isn't announced, the posted threshold covers the rerun, or the proof is wrong.
        """
        return self.transact(wallet, "convict", task_id, _tuples(portions), astuple(rerun), int(component))

    def charge(self, number: int) -> ProfileCharge:
        """The disputed part of a profile. Raises OperationalError: the node has no record of it."""
        event = self.last_event(f"dispute {number} about a profile", "ProfileChallenged", dispute=number)
        component = int(event["component"])
        return ProfileCharge(
            ProfileChargeKind(event["charge"]), int(event["index"]), Component(component) if component else None
        )

    def dispute(self, number: int) -> DeskDispute:
        """A dispute about a profile."""
        return self.read_as(DeskDispute, "dispute", number, about=number)

    def disputable(self, task_id: bytes) -> Disputable:
        """The profile that can be challenged."""
        standing = self.standing(task_id)
        return Disputable(standing.number if standing.is_posted else None, standing.open, standing.fell)

    def conclude(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """End the profiling of a task: its profile is final, and the auction begins."""
        return self.transact(wallet, "conclude", task_id)


def conviction_evidence(rerun: Witness, component: Component) -> bytes:
    """The evidence of a conviction (`announcements.announcement`)."""
    return keccak(encode([WITNESS, "uint8"], [astuple(rerun), int(component)]))


def charge_evidence(charge: ProfileCharge, payload: bytes) -> bytes:
    """The evidence of a challenge whose opening has this ``payload`` (`announcements.announcement`)."""
    component = 0 if charge.kind in {ProfileChargeKind.PORTION, ProfileChargeKind.RERUN} else int(charge.component or 0)
    told = (int(charge.kind), charge.index, component, keccak(payload))
    return keccak(encode(["uint8", "uint32", "uint8", "bytes32"], told))


def witness_of(claim: ProfileClaim, log: CheckpointLog, index: int) -> Witness:
    """A rerun of a claim whose log is ``log``, with its proof."""
    return Witness(index, claim.reruns[index], tuple(log.inclusion(index)))


def _tuples(portions: Sequence[Portion]) -> list[tuple[Any, ...]]:
    return [astuple(portion) for portion in portions]
