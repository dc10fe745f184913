"""Forced errors in verdicts: mirror of `contracts/incentives/ForcedErrors.sol`.

Rules: docs/spec/incentives.md, "Forced errors". Hashes, seeds, secrets, salts and task ids have 32 bytes.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from fractions import Fraction

from pol.claims.segment_claim import SegmentClaim
from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash

ONE = 1 << 32
"""Rates are probabilities times this."""
LEAST_RATE = ONE // 256
LARGEST_RATE = ONE // 4


def check_rate(rate: int) -> None:
    """Check the bounds of a deployment's rate."""
    if not LEAST_RATE <= rate <= LARGEST_RATE:
        raise ProtocolError(
            f"a rate of {rate} is out of bounds: {LEAST_RATE} (1/256) to {LARGEST_RATE} (1/4) are possible"
        )


def rate_of(probability: Fraction) -> int:
    """The rate of a probability, rounded down. Raises ProtocolError: it is out of bounds."""
    rate = int(probability * ONE)
    check_rate(rate)
    return rate


def commitment(account: bytes, task_id: bytes, secret: bytes) -> bytes:
    """A verifier's commitment to its secret when it claims a seat; ``account`` has 20 bytes."""
    return abi_hash(account, task_id, secret)


@dataclass(frozen=True)
class Assignment:
    """A seating with its seed: together with the secret they decide whether and where the verdict errs."""

    seed: bytes
    task_id: bytes
    seating: int
    secret: bytes

    def is_forced(self, rate: int) -> bool:
        """Whether the verdict has to err."""
        return self._draw("forced") < rate << 224

    def index(self, draws: int) -> int:
        """Index of the wrong claim among those of the ``draws`` segments. Raises ProtocolError: there are no draws."""
        if draws < 1:
            raise ProtocolError("a verdict has at least one claim")
        return self._draw("index") % draws

    @property
    def error_root(self) -> bytes:
        """The hidden root of the wrong claim: its replay, or in exact mode its receipt."""
        return abi_hash("error", self.seed, self.task_id, self.seating, self.secret)

    def sealed(self, salt: bytes, claim: SegmentClaim) -> bytes:
        """The commitment to the true claim."""
        segment, start, end, replay, distances, references, *receipt = astuple(claim)
        roots = (segment, start, end, replay)
        return abi_hash("sealed", self.task_id, self.seating, salt, *roots, *distances, *references, *receipt)

    def plant(self, truth: SegmentClaim) -> SegmentClaim:
        """The posted claim: the true one with the error root in place of its hidden one."""
        return truth.with_hidden(self.error_root)

    def _draw(self, purpose: str) -> int:
        return int.from_bytes(abi_hash(purpose, self.seed, self.task_id, self.seating, self.secret), "big")
