"""The threshold that follows from a profile's reruns (docs/spec/profile.md; contracts/market/ProfileThreshold.sol)."""

from __future__ import annotations

from pol.claims.acceptance_rule import THRESHOLD_BITS, travelled
from pol.claims.distance import SATURATION, UNEQUAL
from pol.errors import UnsupportedError

FLOOR = 1 << (THRESHOLD_BITS - 40)
"""The least threshold: 2^-20 of the distance travelled, which is a few roundings of a binary32."""


def ratio(distance: int, reference: int) -> int | None:
    """``distance / reference * 2^64``, rounded up; both are squared. None if it doesn't exist (`require_ratio`)."""
    if distance >= UNEQUAL or reference >= SATURATION:
        return None
    if distance == 0:
        return 0
    if travelled(reference) == 0:
        return None
    return -(-(distance << THRESHOLD_BITS) // travelled(reference))


def require_ratio(distance: int, reference: int) -> int:
    """The `ratio`.

    Raises:
        UnsupportedError: there is none: something isn't finite, or moves in the rerun that the canonical run leaves in
            place.
    """
    found = ratio(distance, reference)
    if found is not None:
        return found
    if distance >= SATURATION or reference >= SATURATION:
        raise UnsupportedError(
            "a profiled segment has state that isn't finite or exceeds 2^23: it has no distance (docs/spec/verdict.md),"
            " so no solver could be accepted"
        )
    if distance >= UNEQUAL:
        raise UnsupportedError("honest runs of this task differ in an integer, so no solver could be accepted")
    raise UnsupportedError("a profiled segment doesn't move, but a rerun of it does; use a longer interval")


def threshold(found: int, margin: int) -> int | None:
    """The threshold for a ratio (of squares): ``ratio * margin^2``, at least `FLOOR`; None if it would reach 2^64."""
    result = max(found * margin * margin, FLOOR)
    return result if result < 1 << THRESHOLD_BITS else None


def require_threshold(distance: int, reference: int, margin: int) -> int:
    """The `threshold` that follows from a rerun.

    Raises:
        UnsupportedError: it has no ratio, or diverges as far as the training itself travels.
    """
    result = threshold(require_ratio(distance, reference), margin)
    if result is None:
        raise UnsupportedError(
            "honest runs of this task diverge as far as the training travels; use a shorter checkpoint interval, a "
            "lower margin, or remove a source of noise: a bias before a normalization has a gradient of zero but for "
            "rounding, and Adam takes full steps by such noise (use bias=False there)"
        )
    return result
