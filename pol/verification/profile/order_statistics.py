"""Tolerance limits by order statistics: what the greatest of some draws covers, whatever the distribution.

Samples are independent draws from one distribution, or exchangeable where it says so. Nothing else is assumed. For
distributions with steps the bounds hold with at least the stated confidence. Source: S. S. Wilks, "Determination of
sample sizes for setting tolerance limits" (1941).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

from pol.errors import ProtocolError


def fresh_share(samples: int) -> Fraction:
    """A lower bound on the probability that one more draw doesn't exceed the greatest of ``samples``: n / (n + 1).

    Of n + 1 exchangeable draws each is the only greatest one with the same probability, 1 / (n + 1) at most.
    """
    _require_samples(samples)
    return Fraction(samples, samples + 1)


def maximum_confidence(samples: int, share: Fraction) -> Fraction:
    """The confidence that the greatest of ``samples`` draws covers ``share`` of the distribution: 1 - share^n."""
    _require_samples(samples)
    _require_fraction("share", share)
    return 1 - share**samples


def maximum_share(samples: int, confidence: Fraction) -> float:
    """The share that the greatest of ``samples`` draws covers with ``confidence``: (1 - confidence)^(1/n), or less."""
    _require_samples(samples)
    _require_fraction("confidence", confidence)
    share = math.nextafter(float(1 - confidence) ** (1 / samples), 1.0)
    while maximum_confidence(samples, Fraction(share)) < confidence:
        share = math.nextafter(share, 0.0)
    return share


def samples_for(share: Fraction, confidence: Fraction) -> int:
    """The fewest draws whose greatest covers ``share`` of the distribution with ``confidence``."""
    _require_fraction("share", share)
    _require_fraction("confidence", confidence)
    estimate = math.log(1 - confidence) / math.log(share)
    # Logarithms are rounded: the neighbors of the estimate are tried exactly.
    samples = max(1, int(estimate * (1 - 1e-9)) - 1)
    while maximum_confidence(samples, share) < confidence:
        samples += 1
    return samples


def rank_for(samples: int, share: Fraction, confidence: Fraction) -> int | None:
    """The least rank whose draw covers ``share`` with ``confidence``; None if not even the greatest of them does."""
    _require_fraction("share", share)
    _require_fraction("confidence", confidence)
    sums = accumulate(_binomial(samples, below, share) for below in range(samples))
    return next((rank for rank, covered in enumerate(sums, 1) if covered >= confidence), None)


def _binomial(samples: int, count: int, share: Fraction) -> Fraction:
    """P(Bin(samples, share) = count)."""
    return math.comb(samples, count) * share**count * (1 - share) ** (samples - count)


def _require_samples(samples: int) -> None:
    if samples < 1:
        raise ProtocolError(f"no bound from {samples} draws: at least one is needed")


def _require_fraction(what: str, value: Fraction) -> None:
    if not 0 < value < 1:
        raise ProtocolError(f"a {what} lies between 0 and 1, both excluded, not {value}")
