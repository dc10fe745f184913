"""The part of a residual that reruns of its segment don't explain (docs/spec/verdict.md#second-look).

Where honest machines take another branch, so does a rerun: its difference and the solver's are the same vector, but for
rounding. A residual that is as long, and points elsewhere, is something else: lower precision, or a push.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pol.claims.acceptance_rule import THRESHOLD_BITS, is_accepted, travelled
from pol.claims.segment_claim import SegmentClaim, Three
from pol.verification.verdict.state_sketch import Difference

BUCKETS = 1 << 12
"""Of a sketch: many times the number of reruns."""
CUT = 8
"""Times the distance that the thresholds allow. Honest branches leave 0.1 to 1.1 outside of the span, as a median."""
SELDOM = 0.01
"""Of honest segments leave more; measured: 0 to 0.0022, by network and optimizer."""
CHANCE = 1e-3
"""The probability with which an honest training may be rejected for as many of them."""

Differences = tuple[Difference, Difference, Difference]


def outside_shares(residual: Differences, reruns: Sequence[Differences]) -> tuple[float, float, float]:
    """By component: the share of the residual's squared length outside of the span of the reruns' differences."""
    parameter, buffer, optimizer = (
        _outside(own, [rerun[place] for rerun in reruns]) for place, own in enumerate(residual)
    )
    return parameter, buffer, optimizer


def is_explained(claim: SegmentClaim, thresholds: Three, outside: Sequence[float]) -> bool:
    """Whether the thresholds allow what the reruns don't explain, up to `CUT`, in all components."""
    rows = zip(claim.distances, claim.references, thresholds, outside, strict=True)
    return all(
        is_accepted(distance, reference, threshold)
        or share * distance <= CUT * CUT * threshold * travelled(reference) / 2**THRESHOLD_BITS
        for distance, reference, threshold, share in rows
    )


def are_too_many(outside: int, segments: int) -> bool:
    """Whether so many segments outside of the span of their reruns are more than honest branches explain."""
    below = sum(math.comb(segments, k) * SELDOM**k * (1 - SELDOM) ** (segments - k) for k in range(outside))
    return 1 - below <= CHANCE


def _outside(own: Difference, reruns: Sequence[Difference]) -> float:
    whole = float(own.sketch @ own.sketch)
    if whole == 0:
        return 0.0
    # Unit columns: lengths of reruns differ by orders of magnitude, and each direction counts.
    columns = [rerun.sketch / rerun.squared**0.5 for rerun in reruns if rerun.squared]
    if not columns:
        return 1.0
    basis = np.stack(columns, axis=1)
    weights, *_ = np.linalg.lstsq(basis, own.sketch, rcond=None)
    rest = own.sketch - basis @ weights
    return float(rest @ rest) / whole
