"""An upper bound on a rate, whatever the distribution: the one-sided bound of Clopper and Pearson.

Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial" (1934).
"""

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from pol.errors import ProtocolError

# Binomial sums run in 60 digits. A step of a sum rounds by 10^-59 at most, so the slack covers 10^20 of them.
_CONTEXT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SLACK = Decimal(1) + Decimal("1e-38")
_BITS = 64


def clopper_pearson_upper(count: int, samples: int, confidence: Fraction) -> float:
    """The one-sided upper bound on a rate of which ``count`` cases were seen in ``samples`` independent trials.

    The least p at which so few cases have a probability of 1 - confidence or less, found by bisection and rounded up.

    Raises:
        ProtocolError: impossible counts, or a confidence that isn't between 0 and 1.
    """
    if samples < 1 or not 0 < confidence < 1:
        raise ProtocolError(f"no bound: {samples} trials and a confidence of {confidence}")
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
        if _at_most(count, samples, Fraction(middle, 1 << _BITS)) <= significance:
            high = middle
        else:
            low = middle
    return min(1.0, math.nextafter(high / (1 << _BITS), 1.0))


def _at_most(count: int, samples: int, rate: Fraction) -> Decimal:
    """P(Bin(samples, rate) <= count), rounded up by the slack; 0 < rate < 1."""
    context = _CONTEXT
    p = context.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    q = context.divide(Decimal(rate.denominator - rate.numerator), Decimal(rate.denominator))
    odds = context.divide(p, q)
    term = total = context.power(q, samples)
    for i in range(count):
        term = context.multiply(term, context.multiply(odds, context.divide(Decimal(samples - i), Decimal(i + 1))))
        total = context.add(total, term)
    return context.multiply(total, _SLACK)
