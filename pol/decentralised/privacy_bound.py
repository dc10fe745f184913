"""How much a training by differentially private steps may tell about one example: Renyi bounds, added up.

Mironov, Talwar, Zhang, Renyi Differential Privacy of the Sampled Gaussian Mechanism, 1908.10530, equation for integer
orders; the conversion to (epsilon, delta) is that of Mironov 2017, 1702.07476, proposition 3.
"""

from __future__ import annotations

import math

from pol.errors import ProtocolError

ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 512)
"""Integer orders among which the bound takes the best."""


def epsilon(rate: float, noise: float, steps: int, delta: float) -> float:
    """The epsilon of ``steps`` sampled Gaussian steps at a ``delta``: each example is in a batch with chance ``rate``.

    ``noise`` is the standard deviation over the clipping norm. An upper bound, for Gaussians of real numbers.

    Raises:
        ProtocolError: a rate outside 0 .. 1, noise that isn't positive, or a delta outside 0 .. 1.
    """
    if not 0 < rate <= 1 or noise <= 0 or not 0 < delta < 1 or steps < 0:
        raise ProtocolError("the bound needs a rate up to 1, noise above 0, a delta between 0 and 1, steps from 0 on")
    found: list[float] = [steps * renyi(rate, noise, order) + math.log(1 / delta) / (order - 1) for order in ORDERS]
    return min(found)


def renyi(rate: float, noise: float, order: int) -> float:
    """The Renyi divergence of one step at an integer order of 2 or more."""
    if rate == 1:
        return order / (2 * noise * noise)
    terms = [
        math.log(math.comb(order, k))
        + k * math.log(rate)
        + (order - k) * math.log1p(-rate)
        + (k * k - k) / (2 * noise * noise)
        for k in range(order + 1)
    ]
    greatest = max(terms)
    return (greatest + math.log(math.fsum(math.exp(term - greatest) for term in terms))) / (order - 1)


def batch_limit(rows: int, rate: float, tail: float = 1e-9) -> int:
    """The least size that a batch of examples drawn at a rate exceeds with a chance below ``tail``."""
    chance, below = (1 - rate) ** rows, 0.0
    for size in range(rows + 1):
        below += chance
        if 1 - below < tail:
            return size
        chance *= (rows - size) / (size + 1) * rate / (1 - rate)
    return rows
