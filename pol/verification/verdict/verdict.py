"""The verdict on a segment: the three outcomes, their reasons, and the decision on a claim (docs/spec/verdict.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from pol.claims.acceptance_rule import EXACT, is_accepted, relative_distance, relative_limit
from pol.claims.distance import SATURATION, UNEQUAL
from pol.claims.segment_claim import SecondLook, SegmentClaim, Three
from pol.errors import EvidenceError, Fault, OperationalError, ProtocolError, UnsupportedError
from pol.graph.step_program import Component
from pol.training.storage.store import CorruptObjectError


class Outcome(IntEnum):
    """The outcome of a verification; zero means nothing."""

    ACCEPTED = 1
    REJECTED = 2
    INCONCLUSIVE = 3


class Reason(StrEnum):
    """The reason of an outcome, for programs; ``Verdict.detail`` is for people.

    A `pol.errors.Fault` is a reason as well: it names the defect of evidence. ``BAD_EVIDENCE`` is any other defect.
    """

    WITHIN_THRESHOLD = "within-threshold"
    EQUAL_ROOTS = "equal-roots"
    WITHIN_SECOND_LOOK = "within-second-look"

    DRIFT = "drift"
    OUTSIDE_SPAN = "outside-span"
    PAIR = "pair-diverges"
    SLOT = "slot-diverges"
    DISTANCE_ABOVE_THRESHOLD = "distance-above-threshold"
    ROOTS_DIFFER = "roots-differ"
    INTEGERS_DIFFER = "integers-differ"
    DISTANCE_INFINITE = "distance-infinite"
    REFERENCE_INFINITE = "reference-infinite"
    ZERO_ROOT = "zero-root"
    NOT_A_NUMBER = "not-a-number"
    INFINITE = "infinite"
    OUT_OF_RANGE = "out-of-range"

    BAD_EVIDENCE = "bad-evidence"

    CORRUPT_OBJECT = "corrupt-object"
    NOT_AVAILABLE = "not-available"
    UNSUPPORTED = "unsupported"
    WORKER_LOST = "worker-lost"


Reasons = tuple[Reason | Fault, ...]


@dataclass(frozen=True)
class Verdict:
    """The outcome for one segment. ``claim`` is None if the evidence didn't allow a replay.

    ``second_look`` is the one that decided, if there is one.
    """

    segment: int
    outcome: Outcome
    reasons: Reasons
    detail: str
    claim: SegmentClaim | None = None
    second_look: SecondLook | None = None


def decide(claim: SegmentClaim, thresholds: Three) -> Verdict:
    """The verdict that follows from a claim; the contract decides the same.

    In exact mode the roots have to be equal, beside the rule for each component: equal states may hold what isn't
    finite, and states that differ may have no distance.
    """
    if not any(claim.start) or not any(claim.end):
        detail = f"segment {claim.segment} begins or ends in a zero root, which is no state"
        return Verdict(claim.segment, Outcome.REJECTED, (Reason.ZERO_ROOT,), detail, claim)
    exact = thresholds == EXACT
    if exact and claim.replay != claim.end:
        detail = f"the replay ends in root {claim.replay.hex()}, the solver's segment in {claim.end.hex()}"
        return Verdict(claim.segment, Outcome.REJECTED, (Reason.ROOTS_DIFFER,), detail, claim)
    reasons: list[Reason] = []
    details: list[str] = []
    rows = zip(Component, claim.distances, claim.references, thresholds, strict=True)
    for component, distance, reference, threshold in rows:
        if is_accepted(distance, reference, threshold):
            continue
        reason = _reason(distance, reference)
        if reason not in reasons:
            reasons.append(reason)
        relative = relative_distance(distance, reference)
        details.append(
            f"{component.name.lower()}: {relative:.3g} of the distance travelled, limit {relative_limit(threshold):.3g}"
        )
    if reasons:
        return Verdict(claim.segment, Outcome.REJECTED, tuple(reasons), "; ".join(details), claim)
    if exact:
        detail = f"segment {claim.segment} ends in the replayed state, bit for bit"
        return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.EQUAL_ROOTS,), detail, claim)
    detail = f"segment {claim.segment} is within the threshold"
    return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,), detail, claim)


def _reason(distance: int, reference: int) -> Reason:
    if distance >= SATURATION:
        return Reason.DISTANCE_INFINITE
    if distance >= UNEQUAL:
        return Reason.INTEGERS_DIFFER
    return Reason.REFERENCE_INFINITE if reference >= SATURATION else Reason.DISTANCE_ABOVE_THRESHOLD


def outcome_of_failure(error: Exception) -> tuple[Outcome, Reason | Fault]:
    """The outcome and the reason that follow from a failure to read or to check evidence.

    Raises:
        Exception: the error itself, if it concerns neither the evidence nor the access to it: a bug is no verdict.
    """
    match error:
        case CorruptObjectError():
            return Outcome.INCONCLUSIVE, Reason.CORRUPT_OBJECT
        case EvidenceError():
            return Outcome.REJECTED, error.fault
        case ProtocolError():
            return Outcome.REJECTED, Reason.BAD_EVIDENCE
        case UnsupportedError():
            return Outcome.INCONCLUSIVE, Reason.UNSUPPORTED
        case OperationalError() | MemoryError():
            return Outcome.INCONCLUSIVE, Reason.NOT_AVAILABLE
    raise error
