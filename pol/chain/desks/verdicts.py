"""Verdicts: posted, watched, disclosed (contracts/market/IVerdicts.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.contract.beacon_rounds import BeaconRounds
from pol.chain.contract.structs import decoded
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim
from pol.errors import OperationalError
from pol.incentives.abi import abi_hash

CLAIM = "(uint32,bytes32,bytes32,bytes32,uint256[3],uint256[3],bytes32,bytes32)"
PLACED = f"({CLAIM},bytes32,bytes32[])"
NO_LOOK = bytes(32)


@dataclass(frozen=True)
class PostedVerdict:
    """The verdict of the current seating of a task."""

    seating: int
    verifier: ChecksumAddress
    rejecting: int
    differing: int
    """Rejecting claims whose replay ends elsewhere than the solver."""
    looks: int
    """Its second looks, each paid by the solver."""
    disclosed: bool
    leaked: bool
    watch_round: int
    watch_fixed_at: int
    watch_until: int
    """Last second of the watch; zero while the round has no seed."""
    claims: bytes
    sealed_claim: bytes


@dataclass(frozen=True)
class PlacedClaim:
    """A claim with the hash of its second look, among the entries of its verdict."""

    claim: SegmentClaim
    look: bytes
    entries: tuple[bytes, ...]


def claim_hash(claim: SegmentClaim) -> bytes:
    """Hash of a claim."""
    return keccak(encode([CLAIM], [astuple(claim)]))


def look_hash(look: SecondLook | None) -> bytes:
    """Hash of the reruns of a second look; zero if there is none."""
    if look is None:
        return NO_LOOK
    return keccak(encode(["(bytes32,uint256[3])[]"], [[astuple(rerun) for rerun in look.reruns]]))


def entry(claim: SegmentClaim, look: bytes) -> bytes:
    """The entry of a claim in its verdict (docs/spec/market.md, "Identifiers")."""
    return keccak(claim_hash(claim) + look)


class Verdicts(Announcements, BeaconRounds):
    """The desk of verdicts."""

    def verdict(self, task_id: bytes) -> PostedVerdict:
        """The verdict of the current seating; zeros if there is none."""
        return self.read_as(PostedVerdict, "verdict", task_id, about=task_id)

    def closed_at(self, task_id: bytes) -> int:
        """Second in which a task was closed; zero if it is open."""
        return int(self.read("closedAt", task_id, about=task_id))

    def post(
        self,
        wallet: Wallet,
        task_id: bytes,
        claims: Sequence[SegmentClaim],
        proofs: Sequence[tuple[Sequence[bytes], Sequence[bytes]]],
        looks: Sequence[SecondLook],
        sealed_claim: bytes,
    ) -> TxReceipt:
        """Post the claims about all drawn segments.

        proofs: for each claim, the inclusion paths of its start and its end. looks: second looks, in the order of the
        claims that need one.
        """
        told = [astuple(look) for look in looks]
        return self.transact(wallet, "post", task_id, [astuple(claim) for claim in claims], proofs, told, sealed_claim)

    def open_watch(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Start the watch with the seed that draws the watchers; records the round if nobody did."""
        return self.transact(wallet, "openWatch", task_id)

    def disclose(self, wallet: Wallet, task_id: bytes, secret: bytes) -> TxReceipt:
        """Disclose a verdict that had to be true."""
        nothing = PlacedClaim(SegmentClaim(0, bytes(32), bytes(32), bytes(32), (0, 0, 0), (0, 0, 0)), NO_LOOK, ())
        return self.disclose_planted(wallet, task_id, secret, bytes(32), nothing)

    def disclose_planted(
        self, wallet: Wallet, task_id: bytes, secret: bytes, salt: bytes, truth: PlacedClaim
    ) -> TxReceipt:
        """Disclose a forced error with the true claim; ``truth`` has the entries as posted."""
        return self.transact(wallet, "disclose", task_id, (secret, salt, *astuple(truth)))

    def claim_undisclosed(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Remove a verifier that hasn't disclosed in time, or whose secret leaked."""
        return self.transact(wallet, "claimUndisclosed", task_id)

    def report_leak(self, wallet: Wallet, task_id: bytes, secret: bytes) -> TxReceipt:
        """Show a verifier's secret before it may be disclosed, announced in an earlier block (`leak_evidence`)."""
        return self.transact(wallet, "reportLeak", task_id, secret)

    def claims(self, task_id: bytes, seating: int) -> list[SegmentClaim]:
        """The present claims of a verdict: a disclosed one has replaced the posted one."""
        return [claims[-1] for claims in self._posted(task_id, seating)]

    def claims_as_posted(self, task_id: bytes, seating: int) -> list[SegmentClaim]:
        """The claims of a verdict before its disclosure."""
        return [claims[0] for claims in self._posted(task_id, seating)]

    def looks(self, task_id: bytes, seating: int) -> dict[int, SecondLook]:
        """The second looks of a verdict, by the index of the claim."""
        claims = self.claims(task_id, seating)
        posted = self.events("LookPosted", taskId=task_id, seating=seating)
        return {
            event["index"]: SecondLook(claims[event["index"]].segment, decoded(tuple[Rerun, ...], event["reruns"]))
            for event in posted
        }

    def placed(self, task_id: bytes, seating: int, index: int, *, as_posted: bool = False) -> PlacedClaim:
        """A claim of a verdict among its entries, from events.

        Raises:
            OperationalError: the node knows no such verdict.
        """
        claims = self.claims_as_posted(task_id, seating) if as_posted else self.claims(task_id, seating)
        if index >= len(claims):
            raise OperationalError(f"the node knows no claim {index} of seating {seating}; is it in sync?")
        looks = self.looks(task_id, seating)
        hashes = [look_hash(looks.get(position)) for position in range(len(claims))]
        entries = tuple(entry(claim, look) for claim, look in zip(claims, hashes, strict=True))
        return PlacedClaim(claims[index], hashes[index], entries)

    def _posted(self, task_id: bytes, seating: int) -> list[list[SegmentClaim]]:
        """For each index all claims that were posted there, oldest first."""
        found: dict[int, list[SegmentClaim]] = {}
        for event in self.events("ClaimPosted", taskId=task_id, seating=seating):
            found.setdefault(int(event["index"]), []).append(decoded(SegmentClaim, event["claim"]))
        return [found[index] for index in sorted(found)]


def leak_evidence(secret: bytes) -> bytes:
    """The evidence of a leak (`announcements.announcement`)."""
    return abi_hash(secret)


def evidence(posted: PlacedClaim, final: PlacedClaim) -> bytes:
    """Evidence for `Verdicts.refuted` that the posted entry differs from the final one."""
    return encode([PLACED, PLACED], [astuple(posted), astuple(final)])
