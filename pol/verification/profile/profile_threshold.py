"""The threshold that follows from a profile's reruns (docs/spec/profile.md; contracts/market/ProfileThreshold.sol)."""

from __future__ import annotations

import math

from pol.claims.acceptance_rule import THRESHOLD_BITS, travelled
from pol.claims.distance import SATURATION, UNEQUAL
from pol.errors import UnsupportedError

FLOOR = 1 << (THRESHOLD_BITS - 40)
"""The least threshold: 2^-20 of the distance travelled, which is a few roundings of a binary32."""
MOST = 1 << (THRESHOLD_BITS - 12)
"""The greatest one: 2^-6 of the distance travelled, as in second looks. A cheat goes anywhere within more than that."""


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
    """The threshold for a ratio (of squares): ``ratio * margin^2``, at least `FLOOR`; None above `MOST`."""
    result = max(found * margin * margin, FLOOR)
    return result if result <= MOST else None


def require_threshold(distance: int, reference: int, margin: int) -> int:
    """The `threshold` that follows from a rerun.

    Raises:
        UnsupportedError: it has no ratio, or diverges too far: by more than 2^-6 / margin of the way travelled.
    """
    result = threshold(require_ratio(distance, reference), margin)
    if result is None:
        raise UnsupportedError(
            f"honest runs of this task diverge by {math.sqrt(require_ratio(distance, reference) / 2**64):.2g} of the "
            f"way travelled, and {margin} times that is more than the 1/64 that thresholds may allow: a cheat could go "
            "anywhere within. Use exact mode; or weigh each tensor by its own noise (`pol profile --scale`); or remove "
            "the source of noise: a bias before a normalization, or on the keys of attention, has a gradient of zero "
            "but for rounding, and Adam takes full steps by such noise (use bias=False there); else take a shorter "
            "checkpoint interval or a lower margin"
        )
    return result
