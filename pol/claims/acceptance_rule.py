"""The acceptance rule: when a distance is within a threshold (docs/spec/verdict.md, "Rule").

A threshold is the squared relative distance that is allowed, in units of 2^-64. It follows from a profile
(`pol.verification.profile.profile_claim`); in exact mode it is zero.
"""

from __future__ import annotations

from pol.claims.distance import SATURATION, UNEQUAL
from pol.claims.segment_claim import Three
from pol.errors import ProtocolError

THRESHOLD_BITS = 64
EXACT: Three = (0, 0, 0)
"""The thresholds of exact mode: the solver ran canonically, so the roots must be equal."""


def is_accepted(distance: int, reference: int, threshold: int) -> bool:
    """Whether one component is accepted: equal integers, and ``distance * 2^64 <= threshold * travelled(reference)``.

    If no number moved (or the program has no such slots) only a distance of zero is accepted.
    """
    if not 0 <= threshold < 1 << THRESHOLD_BITS:
        raise ProtocolError(f"threshold {threshold} isn't an unsigned 64-bit integer")
    if not 0 <= distance < UNEQUAL or not 0 <= reference < SATURATION:
        return False
    return distance << THRESHOLD_BITS <= threshold * travelled(reference)


def travelled(reference: int) -> int:
    """The part of a finite reference that comes from f32 words; integers must be equal, however far they moved."""
    return reference % UNEQUAL


def relative_distance(distance: int, reference: int) -> float:
    """``|replay - end| / |replay - start|`` over f32 words, for people.

    Infinite if either is infinite, if integers differ, or if only the reference is zero.
    """
    if distance >= UNEQUAL or reference >= SATURATION:
        return float("inf")
    if distance == 0:
        return 0.0
    return float((distance / travelled(reference)) ** 0.5) if travelled(reference) else float("inf")


def relative_limit(threshold: int) -> float:
    """The relative distance that a threshold allows, for people."""
    return float((threshold / 2**THRESHOLD_BITS) ** 0.5)
