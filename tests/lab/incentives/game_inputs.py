"""Inputs of the game of one task: stakes, costs and threats, and the chances that follow from draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor

CLAIM_TRANSACTIONS = 3
"""Transactions of a verifier: claim of the seat, verdict, disclosure."""
CATCH_TRANSACTIONS = 2
"""Transactions of a watcher that has found an error: commitment and claim."""


@dataclass(frozen=True)
class Stakes:
    """The stakes of a task, in the smallest unit of the asset."""

    price: int
    """Price of the solver."""
    verifier_fee: int
    solver_stake: int
    verifier_stake: int
    bond: int
    jackpot: int
    segments: int
    draws: int
    profiled: bool = True
    """The submitter pays a profiler, too; not in exact mode."""


@dataclass(frozen=True)
class Costs:
    """Costs of work, in the smallest unit of the asset."""

    training: int
    segment: int
    """Replay of one segment."""
    transaction: int
    dispute: int
    """All moves of one side of a dispute."""
    solver_capital: float = 0.0
    """Cost of locking the solver's stake for the duration of the task."""
    verifier_capital: float = 0.0
    dispute_delay: float = 0.0
    """Cost to all parties of locking their money for one dispute of the longest duration."""
    seating_delay: float = 0.0
    """The same for one more seating: draw, verdict, watch, disclosure, challenges."""


@dataclass(frozen=True)
class Threat:
    """Gains and abilities of an adversary."""

    gain: int
    """Gain of a solver that fabricates ``least`` segments or more, beside the saved work."""
    least: int
    coalition: float
    """A coalition's share of all tickets: below 1."""
    seeds: int = 1
    """Number of seeds that the adversary chooses from: 2^bits of a biasable beacon."""
    false_reject: float = 0.0
    """Probability that honest work is rejected."""
    public_roots: bool = False
    """The root in which an error is planted is known without a replay: exact mode without receipts."""
    saved_by_one_lie: float = 1.0
    """The largest part of the training that one fabricated segment saves."""
    objectors: float = 0.0
    """Probability that a party outside of the coalition looks at the whole log and objects to a jump in it."""
    can_wait: bool = False
    """There is time to replay after seeing another's commitment."""
    watchers_known: bool = False
    """The verifier knows its watchers before its verdict."""
    catches_of_lies: bool = True
    """Watch rewards are paid for lies as for planted errors."""


@dataclass(frozen=True)
class Fabrication:
    """A way to fabricate segments."""

    name: str
    cheated: int
    saved: float
    """Part of the training that it saves."""
    missed: float
    """Probability that none of the fabricated segments is drawn."""
    unseen: float = 1.0
    """Probability that nobody objects to them."""


def over_drawn(average: float, seeds: int, worth: Callable[[int], float]) -> float:
    """The mean of ``worth(k)`` over the number k of drawn watchers: Poisson, the minimum of ``seeds`` draws.

    ``worth`` falls with k and levels off. Drawing tickets one by one brings less where ``worth`` is convex.
    """
    mean, chance, above, k = 0.0, exp(-average), 1.0, 0
    while above > 1e-15:
        beyond = max(0.0, above - chance)
        mean += (above**seeds - beyond**seeds) * worth(k)
        k, above = k + 1, beyond
        chance *= average / k
    return mean


def temptations(segments: int, least: int, saved: float) -> list[int]:
    """Candidates for the best number of fabricated segments: theorem 3 of docs/spec/game.md."""
    # From this number on, one more saves nothing.
    enough = floor(1 / max(saved, 1 / segments) + 1e-9)
    return sorted({k for k in (1, enough, enough + 1, least - 1, least) if 1 <= k <= segments})
