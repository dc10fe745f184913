"""Verdicts: posted, watched, disclosed (contracts/market/IVerdicts.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.announcements import Announcements
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim
from pol.errors import OperationalError
from pol.incentives.abi import abi_hash

CLAIM = "(uint32,bytes32,bytes32,bytes32,uint256[3],uint256[3])"
PLACED = f"({CLAIM},bytes32,bytes32[])"
NO_LOOK = bytes(32)


@dataclass(frozen=True)
class PostedVerdict:
    """The verdict of the current seating of a task."""

    seating: int
    verifier: ChecksumAddress
    rejecting: int
    differing: int
    """Of the claims that reject, those whose replay doesn't end where the solver did."""
    looks: int
    """Second looks that it has, each paid by the solver."""
    disclosed: bool
    leaked: bool
    watch_round: int
    watch_fixed_at: int
    watch_until: int
    """Last second of the watch; zero while the round has no seed."""
    claims: bytes
    sealed_claim: bytes


@dataclass(frozen=True)
class Placed:
    """A claim among the entries of its verdict."""

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
    return keccak(encode(["(bytes32,uint256[3])[]"], [[(rerun.end, rerun.distances) for rerun in look.reruns]]))


def entry(claim: SegmentClaim, look: bytes) -> bytes:
    """What stands for a claim among the entries of its verdict (docs/spec/market.md, "Identifiers")."""
    return keccak(claim_hash(claim) + look)


class Verdicts(Announcements):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "Verdicts", address)

    def verdict(self, task_id: bytes) -> PostedVerdict:
        """The verdict of the current seating; zeros if there is none."""
        return PostedVerdict(*self.read("verdict", task_id))

    def closed_at(self, task_id: bytes) -> int:
        """When a task was closed; zero if it isn't."""
        return int(self.read("closedAt", task_id))

    def post(
        self,
        wallet: Wallet,
        task_id: bytes,
        claims: Sequence[SegmentClaim],
        proofs: Sequence[tuple[Sequence[bytes], Sequence[bytes]]],
        looks: Sequence[SecondLook],
        sealed_claim: bytes,
    ) -> TxReceipt:
        """Answer for every drawn segment; a proof is the inclusion paths of its start and its end.

        ``looks`` are the second looks in the order of the claims that need one.
        """
        paths = [(list(start), list(end)) for start, end in proofs]
        told = [(look.segment, [(rerun.end, rerun.distances) for rerun in look.reruns]) for look in looks]
        return wallet.send(
            self.function("post", task_id, [astuple(claim) for claim in claims], paths, told, sealed_claim)
        )

    def open_watch(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Take the seed that draws the watchers, recording the round if nobody did."""
        return wallet.send(self.function("openWatch", task_id))

    def patient_until(self, task_id: bytes) -> int:
        """Last second of a wait for a round before the task may be abandoned; 0 if nothing waits."""
        return int(self.read("patientUntil", task_id))

    def replace_round(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """A round that the beacon hasn't given for a week is replaced."""
        return wallet.send(self.function("replaceRound", task_id))

    def disclose(self, wallet: Wallet, task_id: bytes, secret: bytes) -> TxReceipt:
        """Show that the verdict had to be true."""
        nothing = SegmentClaim(0, bytes(32), bytes(32), bytes(32), (0, 0, 0), (0, 0, 0))
        return wallet.send(self.function("disclose", task_id, (secret, bytes(32), astuple(nothing), NO_LOOK, [])))

    def disclose_planted(self, wallet: Wallet, task_id: bytes, secret: bytes, salt: bytes, truth: Placed) -> TxReceipt:
        """Show that the verdict had to err, and the claim that is true. ``truth`` has the entries as posted."""
        shown = (secret, salt, astuple(truth.claim), truth.look, list(truth.entries))
        return wallet.send(self.function("disclose", task_id, shown))

    def claim_undisclosed(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Remove a verifier that hasn't disclosed in time, or whose secret was shown."""
        return wallet.send(self.function("claimUndisclosed", task_id))

    def report_leak(self, wallet: Wallet, task_id: bytes, secret: bytes) -> TxReceipt:
        """Show a verifier's secret before it may be disclosed, announced in an earlier block (`leak_evidence`)."""
        return wallet.send(self.function("reportLeak", task_id, secret))

    def claims(self, task_id: bytes, seating: int) -> list[SegmentClaim]:
        """The claims of a verdict as they stand: a disclosed one takes the place of what was posted."""
        return [claims[-1] for claims in self._posted(task_id, seating)]

    def claims_as_posted(self, task_id: bytes, seating: int) -> list[SegmentClaim]:
        """The claims of a verdict before its disclosure."""
        return [claims[0] for claims in self._posted(task_id, seating)]

    def looks(self, task_id: bytes, seating: int) -> dict[int, SecondLook]:
        """The second looks of a verdict, by the index of the claim."""
        claims = self.claims(task_id, seating)
        posted = self.events("LookPosted", taskId=task_id, seating=seating)
        return {
            int(event["index"]): SecondLook(
                claims[int(event["index"])].segment, tuple(_rerun(rerun) for rerun in event["reruns"])
            )
            for event in posted
        }

    def placed(self, task_id: bytes, seating: int, index: int, *, as_posted: bool = False) -> Placed:
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
        return Placed(claims[index], hashes[index], entries)

    def _posted(self, task_id: bytes, seating: int) -> list[list[SegmentClaim]]:
        """For each index all claims that were posted there, oldest first."""
        found: dict[int, list[SegmentClaim]] = {}
        for event in self.events("ClaimPosted", taskId=task_id, seating=seating):
            found.setdefault(int(event["index"]), []).append(_claim(event["claim"]))
        return [found[index] for index in sorted(found)]


def leak_evidence(secret: bytes) -> bytes:
    """What is announced before a secret is shown (`announcements.announcement`)."""
    return abi_hash(secret)


def evidence(said: Placed, stands: Placed) -> bytes:
    """What `Verdicts.refuted` is shown: that an entry said something else than the one that stands in the end."""
    pair = [(astuple(placed.claim), placed.look, list(placed.entries)) for placed in (said, stands)]
    return encode([PLACED, PLACED], pair)


def _values(fields: Any) -> list[Any]:
    """The members of a struct as an event carries it."""
    return list(fields.values()) if hasattr(fields, "values") else list(fields)


def _claim(fields: Any) -> SegmentClaim:
    segment, start, end, replay, distances, references = _values(fields)
    return SegmentClaim(int(segment), bytes(start), bytes(end), bytes(replay), tuple(distances), tuple(references))


def _rerun(fields: Any) -> Rerun:
    end, distances = _values(fields)
    first, second, third = distances
    return Rerun(bytes(end), (int(first), int(second), int(third)))
