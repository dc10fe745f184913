"""Bounds that hold for any distribution: tolerance limits by order statistics, and upper bounds on a rate.

Samples are independent draws from one distribution, or exchangeable where it says so. Nothing else is assumed. For
distributions with steps the bounds hold with at least the stated confidence. Source: S. S. Wilks, "Determination of
sample sizes for setting tolerance limits" (1941); C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial
limits illustrated in the case of the binomial" (1934).
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from pol.errors import ProtocolError

# Binomial sums run in 60 digits. A step of a sum rounds by 10^-59 at most, so the slack covers 10^20 of them.
_CONTEXT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SLACK = Decimal(1) + Decimal("1e-38")
_BITS = 64


def fresh_share(samples: int) -> Fraction:
    """The probability, at least, that one more draw doesn't exceed the greatest of ``samples``: n / (n + 1).

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
    """The share that the greatest of ``samples`` draws covers with ``confidence``: (1 - confidence)^(1/n), or less.

    What it leaves out is the upper bound on a rate of which nothing was seen.
    """
    return math.nextafter(1.0 - clopper_pearson_upper(0, samples, confidence), 0.0)


def samples_for(share: Fraction, confidence: Fraction) -> int:
    """The fewest draws whose greatest covers ``share`` of the distribution with ``confidence``."""
    _require_fraction("share", share)
    _require_fraction("confidence", confidence)
    estimate = math.log(1 - confidence) / math.log(share)
    # Logarithms are rounded: the neighbours of the estimate are tried exactly.
    samples = max(1, int(estimate * (1 - 1e-9)) - 1)
    while maximum_confidence(samples, share) < confidence:
        samples += 1
    return samples


def rank_confidence(samples: int, rank: int, share: Fraction) -> float:
    """The confidence that the ``rank``-th smallest of ``samples`` draws covers ``share``, rounded down.

    It covers less only if ``rank`` draws or more fall into the lowest part of that share: P(Bin(n, share) < rank).
    """
    _require_samples(samples)
    _require_fraction("share", share)
    if not 1 <= rank <= samples:
        raise ProtocolError(f"{samples} draws have no rank {rank}: 1 (the smallest) to {samples} (the greatest)")
    missed = float(_at_most(samples - rank, samples, 1 - share, Decimal(1)))
    # P(Bin(n, share) >= rank) = P(Bin(n, 1 - share) <= n - rank)
    return max(0.0, math.nextafter(1.0 - math.nextafter(missed, 1.0), 0.0))


def rank_for(samples: int, share: Fraction, confidence: Fraction) -> int | None:
    """The least rank whose draw covers ``share`` with ``confidence``; None if not even the greatest of them does."""
    _require_fraction("confidence", confidence)
    if maximum_confidence(samples, share) < confidence:
        return None
    low, high = 1, samples
    while low < high:
        middle = (low + high) // 2
        if rank_confidence(samples, middle, share) >= confidence:
            high = middle
        else:
            low = middle + 1
    return low


def clopper_pearson_upper(count: int, samples: int, confidence: Fraction) -> float:
    """The one-sided upper bound on a rate of which ``count`` cases were seen in ``samples`` independent trials.

    The least p at which so few cases have a probability of 1 - confidence or less, found by bisection and rounded up.

    Raises:
        ProtocolError: impossible counts, or a confidence that isn't between 0 and 1.
    """
    _require_samples(samples)
    _require_fraction("confidence", confidence)
    if not 0 <= count <= samples:
        raise ProtocolError(f"{count} cases in {samples} trials are impossible")
    if count == samples:
        return 1.0
    significance = _CONTEXT.divide(
        Decimal((1 - confidence).numerator), _CONTEXT.multiply(Decimal((1 - confidence).denominator), _SLACK)
    )
    low, high = 0, 1 << _BITS
    while high - low > 1:
        middle = (low + high) // 2
        if _at_most(count, samples, Fraction(middle, 1 << _BITS), _SLACK) <= significance:
            high = middle
        else:
            low = middle
    return min(1.0, math.nextafter(high / (1 << _BITS), 1.0))


def _at_most(count: int, samples: int, rate: Fraction, slack: Decimal) -> Decimal:
    """P(Bin(samples, rate) <= count), times ``slack``; 0 < rate < 1."""
    context = _CONTEXT
    p = context.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    q = context.divide(Decimal(rate.denominator - rate.numerator), Decimal(rate.denominator))
    odds = context.divide(p, q)
    term = total = context.power(q, samples)
    for i in range(count):
        term = context.multiply(term, context.multiply(odds, context.divide(Decimal(samples - i), Decimal(i + 1))))
        total = context.add(total, term)
    return context.multiply(total, slack)


def _require_samples(samples: int) -> None:
    if samples < 1:
        raise ProtocolError(f"{samples} draws promise nothing: at least one is needed")


def _require_fraction(what: str, value: Fraction) -> None:
    if not 0 < value < 1:
        raise ProtocolError(f"a {what} lies between 0 and 1, both excluded, not {value}")
