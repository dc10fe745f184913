"""Profiles as the roles see them (contracts/market/IProfiles.sol says what each verb does)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak
from web3.logs import DISCARD
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.desks.challenges import Ending
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import Rerun, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind
from pol.verification.profile.profile_claim import Portion, ProfileClaim

WITNESS = "(uint32,(bytes32,uint256[3]),bytes32[])"
Proved = tuple[bytes, list[bytes]]
"""A program's hash and its inclusion path in `Terms.reruns`."""


@dataclass(frozen=True)
class Witness:
    """A rerun with the proof that it has this index under the posted root; the contract's struct ``Witness``."""

    index: int
    rerun: Rerun
    path: tuple[bytes, ...]


@dataclass(frozen=True)
class PostedProfile:
    """All that the chain knows about a profile."""

    number: int
    verifier: ChecksumAddress
    portions: tuple[Portion, ...]
    root: bytes
    witnesses: tuple[Witness, Witness, Witness]
    thresholds: Three
    digest: bytes
    deadline: int


@dataclass(frozen=True)
class Standing:
    """Where the profile of a task is in its life; zeros but for ``number`` if there is none."""

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
class ProfileDispute:
    """What the contract knows about a dispute of its game."""

    task_id: bytes
    challenger: ChecksumAddress
    profile: int
    ending: Ending
    bond: int

    @property
    def is_settled(self) -> bool:
        """Whether its bond is free or lost."""
        return self.ending is Ending.SETTLED


class Profiles(Announcements):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Profiles", address)

    def standing(self, task_id: bytes) -> Standing:
        """Where the profile of a task is in its life."""
        fields = list(self.read("profile", task_id))
        fields[3] = tuple(fields[3])
        return Standing(*fields)

    def posted(self, task_id: bytes) -> PostedProfile:
        """The profile that the task has now, from its event.

        Raises:
            OperationalError: there is none.
        """
        standing = self.standing(task_id)
        events = self.events("ProfilePosted", taskId=task_id, profile=standing.number)
        if not standing.is_posted or not events:
            raise OperationalError("the task has no profile, so no thresholds to agree to yet; try again later")
        event = events[-1]
        first, second, third = (_witness(witness) for witness in event["witnesses"])
        return PostedProfile(
            number=standing.number,
            verifier=standing.verifier,
            portions=tuple(Portion(bytes(end), _three(sums)) for end, sums in map(_values, event["portions"])),
            root=bytes(event["rerunRoot"]),
            witnesses=(first, second, third),
            thresholds=standing.thresholds,
            digest=bytes(event["digest"]),
            deadline=standing.deadline,
        )

    def post(self, wallet: Wallet, task_id: bytes, claim: ProfileClaim, digest: bytes) -> TxReceipt:
        """State what was measured; the contract computes the thresholds from the witnesses."""
        log = claim.log
        witnesses = [_tuple(witness_of(claim, log, index)) for index in claim.witnesses]
        portions = [astuple(portion) for portion in claim.portions]
        return wallet.send(self.function("post", task_id, portions, log.root(), witnesses, digest))

    def challenge(
        self,
        wallet: Wallet,
        task_id: bytes,
        portions: Sequence[Portion],
        charge: ProfileCharge,
        header: bytes,
        payload: bytes,
        rerun: Witness | None = None,
        program: Proved | None = None,
    ) -> int:
        """Dispute one part of the posted profile for the bond of the moment; returns the number of the dispute.

        ``payload`` is the challenger's own version: its first move. The challenge is announced a block before, so that
        nobody copies it. RERUN and DISTANCE take the ``rerun`` with its proof, RERUN also the ``program`` that the
        rerun executes, whose header is ``header``.

        Raises:
            ProtocolError: UNDERSTATED is no dispute (`convict`), or the proofs are missing.
            Reverted: the contract refuses the challenge.
        """
        opening, told = (header, payload, 8 * self.bond_of(task_id)), [astuple(portion) for portion in portions]
        if charge.kind is ProfileChargeKind.PORTION:
            call = self.function("challengePortion", task_id, told, charge.index, opening)
        elif charge.kind is ProfileChargeKind.RERUN and rerun and program:
            call = self.function("challengeRerun", task_id, told, _tuple(rerun), program, opening)
        elif charge.kind is ProfileChargeKind.DISTANCE and rerun:
            call = self.function("challengeDistance", task_id, told, _tuple(rerun), charge.component, opening)
        elif charge.kind is ProfileChargeKind.REFERENCE:
            call = self.function("challengeReference", task_id, told, charge.index, charge.component, opening)
        else:
            raise ProtocolError(f"{charge.kind.name} is no dispute, or its proofs are missing")
        self.bring(wallet, task_id, charge_evidence(charge, payload))
        receipt = wallet.send(call)
        (event,) = self.contract.events.ProfileChallenged().process_receipt(receipt, errors=DISCARD)
        return int(event["args"]["dispute"])

    def convict(
        self, wallet: Wallet, task_id: bytes, portions: Sequence[Portion], rerun: Witness, component: Component
    ) -> TxReceipt:
        """Show a rerun from which a higher threshold follows than the posted one, or none: the profile is void.

        Announced in an earlier block (`conviction_evidence`).

        Raises:
            Reverted: it isn't announced, the posted threshold covers the rerun, or the proof is wrong.
        """
        told = [astuple(portion) for portion in portions]
        return wallet.send(self.function("convict", task_id, told, _tuple(rerun), int(component)))

    def charge(self, number: int) -> ProfileCharge:
        """What a dispute is about.

        Raises:
            OperationalError: the node has no record of it.
        """
        events = self.events("ProfileChallenged", dispute=number)
        if not events:
            raise OperationalError(f"the node knows no dispute {number} about a profile; is it in sync?")
        event, component = events[0], int(events[0]["component"])
        return ProfileCharge(
            ProfileChargeKind(event["charge"]), int(event["index"]), Component(component) if component else None
        )

    def bond_of(self, task_id: bytes) -> int:
        """What the next challenger of the posted profile puts up, in wei (`payouts.bond_after`)."""
        return int(self.read("bondOf", task_id))

    def dispute(self, number: int) -> ProfileDispute:
        """What is known about a dispute; zeros if no challenge led to it."""
        task_id, challenger, profile, ending, bond = self.read("dispute", number)
        return ProfileDispute(task_id, challenger, profile, Ending(ending), bond)

    def disputes(self, task_id: bytes) -> list[int]:
        """Numbers of the disputes that the posted profile waits for, oldest first."""
        standing = self.standing(task_id)
        if not standing.is_posted or not standing.open:
            return []
        challenged = self.events("ProfileChallenged", taskId=task_id, profile=standing.number)
        return [n for n in (int(event["dispute"]) for event in challenged) if not self.dispute(n).is_settled]

    def settleable(self, task_id: bytes, challenger: ChecksumAddress) -> list[int]:
        """Numbers of a challenger's disputes that the game has ended, or whose profile fell otherwise."""
        standing, numbers = self.standing(task_id), []
        for event in self.events("ProfileChallenged", taskId=task_id, challenger=challenger):
            dispute = self.dispute(number := int(event["dispute"]))
            is_moot = standing.fell or not standing.is_posted or dispute.profile != standing.number
            if not dispute.is_settled and (is_moot or dispute.ending is not Ending.NONE):
                numbers.append(number)
        return numbers

    def settle(self, wallet: Wallet, number: int) -> TxReceipt:
        """Pay out what a dispute was about: anybody does it, once the game has ended it or it is moot.

        Raises:
            Reverted: it is neither, or somebody has done it.
        """
        return wallet.send(self.function("settleDispute", number))

    def conclude(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """End the profiling of a task: its profile can't be challenged any more, and the auction begins."""
        return wallet.send(self.function("conclude", task_id))


def conviction_evidence(rerun: Witness, component: Component) -> bytes:
    """What is announced before a rerun convicts (`announcements.announcement`)."""
    return keccak(encode([WITNESS, "uint8"], [_tuple(rerun), int(component)]))


def charge_evidence(charge: ProfileCharge, payload: bytes) -> bytes:
    """What is announced before a challenge whose opening has this ``payload`` (`announcements.announcement`)."""
    component = 0 if charge.kind in {ProfileChargeKind.PORTION, ProfileChargeKind.RERUN} else int(charge.component or 0)
    told = (int(charge.kind), charge.index, component, keccak(payload))
    return keccak(encode(["uint8", "uint32", "uint8", "bytes32"], told))


def witness_of(claim: ProfileClaim, log: CheckpointLog, index: int) -> Witness:
    """A rerun of a claim whose log is ``log``, with its proof."""
    return Witness(index, claim.reruns[index], tuple(log.inclusion(index)))


def _tuple(witness: Witness) -> tuple[int, tuple[bytes, Three], list[bytes]]:
    return witness.index, (witness.rerun.end, witness.rerun.distances), list(witness.path)


def _witness(fields: Any) -> Witness:
    index, rerun, path = _values(fields)
    end, distances = _values(rerun)
    return Witness(int(index), Rerun(bytes(end), _three(distances)), tuple(bytes(sibling) for sibling in path))


def _values(fields: Any) -> list[Any]:
    """The members of a struct as an event carries it."""
    return list(fields.values()) if hasattr(fields, "values") else list(fields)


def _three(numbers: Sequence[int]) -> Three:
    parameter, buffer, optimizer = numbers
    return int(parameter), int(buffer), int(optimizer)
