"""Outliers of a series: the distance of each number from a prediction by its neighbors, in units of typical noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]
REACH = 3
"""Neighbors on either side that a number is compared with."""
_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation, which outliers don't move."""
LEAST = 1e-3
"""The least that counts as typical: in a training that repeats itself a rounding isn't odd."""


def oddness(values: Series) -> Series:
    """0 is as suggested, 1 a standard deviation of what is typical; 0 too where a number isn't finite, or is alone.

    Neighbors suggest the middle between both sides, so that a schedule is followed; at an end, the line of the other
    side. The median of `REACH` suggestions counts: a neighbor that is odd itself doesn't make this one odd.
    """
    seen = np.where(np.isfinite(values), values, np.nan)
    found: Series = np.array([_residual(seen, i) for i in range(seen.size)])
    known = found[~np.isnan(found)]
    typical = max(_DEVIATION * float(np.median(known)), LEAST) if known.size else LEAST
    return np.where(np.isnan(found), 0.0, found) / typical


def _residual(values: Series, i: int) -> float:
    """The distance of a number from its suggestion, in units of the suggestions' noise; NaN without suggestions."""
    middles = [(i - k, i + k, 0.5, 0.5) for k in range(1, REACH + 1)]
    lines = [(i + side, i + 2 * side, 2.0, -1.0) for side in (-1, 1)]
    suggested: list[float] = []
    noise: list[float] = []
    for a, b, weight_a, weight_b in middles + lines:
        if len(suggested) < REACH and min(a, b) >= 0 and max(a, b) < values.size:
            suggestion = float(weight_a * values[a] + weight_b * values[b])
            if not math.isnan(suggestion):
                suggested.append(suggestion)
                noise.append(math.hypot(weight_a, weight_b, 1.0))
    return float(abs(values[i] - np.median(suggested)) / np.median(noise)) if suggested else math.nan
