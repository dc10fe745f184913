"""When a verdict has to be wrong on purpose, and how: mirror of `contracts/incentives/ForcedErrors.sol`.

Rules: docs/spec/incentives.md, "Forced errors". Hashes, seeds, secrets, salts and task ids have 32 bytes.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from fractions import Fraction

from pol.claims.segment_claim import SegmentClaim
from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash

ONE = 1 << 32
"""A rate is this times its probability."""
LEAST_RATE = ONE // 256
LARGEST_RATE = ONE // 4


def check_rate(rate: int) -> None:
    """Check that a deployment may have this rate.

    Raises:
        ProtocolError: it is below one error in 256 verdicts or above one in four.
    """
    if not LEAST_RATE <= rate <= LARGEST_RATE:
        raise ProtocolError(
            f"a rate of {rate} is out of bounds: {LEAST_RATE} (1/256) to {LARGEST_RATE} (1/4) are possible"
        )


def rate_of(probability: Fraction) -> int:
    """The rate that gives a probability, rounded down.

    Raises:
        ProtocolError: no deployment may have it.
    """
    rate = int(probability * ONE)
    check_rate(rate)
    return rate


def commitment(account: bytes, task_id: bytes, secret: bytes) -> bytes:
    """What a verifier fixes its secret with when it claims a seat; ``account`` has 20 bytes."""
    return abi_hash(account, task_id, secret)


@dataclass(frozen=True)
class Assignment:
    """A verifier's seating when its seed is known: everything that its secret says about its verdict."""

    seed: bytes
    task_id: bytes
    seating: int
    secret: bytes

    def is_forced(self, rate: int) -> bool:
        """Whether the verdict has to be wrong."""
        return self._draw("forced") < rate << 224

    def index(self, draws: int) -> int:
        """Which of the claims of the ``draws`` segments is the wrong one.

        Raises:
            ProtocolError: there are no draws.
        """
        if draws < 1:
            raise ProtocolError("a verdict has at least one claim")
        return self._draw("index") % draws

    @property
    def error_root(self) -> bytes:
        """What that claim gives as its replay."""
        return abi_hash("error", self.seed, self.task_id, self.seating, self.secret)

    def sealed(self, salt: bytes, claim: SegmentClaim) -> bytes:
        """What hides the claim that takes its place."""
        segment, start, end, replay, distances, references = astuple(claim)
        return abi_hash(
            "sealed", self.task_id, self.seating, salt, segment, start, end, replay, *distances, *references
        )

    def plant(self, truth: SegmentClaim) -> SegmentClaim:
        """What is posted in the place of the true claim: it differs in nothing else than its replay."""
        return replace(truth, replay=self.error_root)

    def _draw(self, purpose: str) -> int:
        return int.from_bytes(abi_hash(purpose, self.seed, self.task_id, self.seating, self.secret), "big")
