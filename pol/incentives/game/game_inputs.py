"""Inputs of the game of one task: stakes, costs and threats, and the chances that follow from draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor

CLAIM_TRANSACTIONS = 3
"""Of a verifier: claim of the seat, verdict, disclosure."""
CATCH_TRANSACTIONS = 2
"""Of a watcher that has found something: commitment and catch."""


@dataclass(frozen=True)
class Stakes:
    """What a task puts at stake, in the smallest unit of the asset."""

    price: int
    """What the solver is paid."""
    verifier_fee: int
    solver_stake: int
    verifier_stake: int
    bond: int
    jackpot: int
    segments: int
    draws: int


@dataclass(frozen=True)
class Costs:
    """What work costs the parties, in the same unit."""

    training: int
    segment: int
    """Replay of one segment."""
    transaction: int
    dispute: int
    """All moves of one side of a dispute."""
    solver_capital: float = 0.0
    """What it costs to have the solver's stake locked for as long as the task takes."""
    verifier_capital: float = 0.0
    dispute_delay: float = 0.0
    """What it costs all parties of a task to have their money locked for one dispute, the longest possible."""
    seating_delay: float = 0.0
    """The same for one seating more: draw, verdict, watch, disclosure, challenges."""


@dataclass(frozen=True)
class Threat:
    """What the parties may gain by something else than their duty."""

    gain: int
    """Of a solver that fabricates ``least`` segments or more, beside the work that it saves."""
    least: int
    coalition: float
    """Share of all tickets that a coalition holds: below 1."""
    seeds: int = 1
    """Among how many seeds the adversary chooses: 2^bits of a beacon that it can bias."""
    false_reject: float = 0.0
    """Probability that honest work is rejected."""
    public_roots: bool = False
    """The true roots can be known without a replay: exact mode."""
    saved_by_one_lie: float = 1.0
    """The most of the training that one fabricated segment saves: of a state from which going on costs nothing, all."""
    can_wait: bool = False
    """Whoever sees a commitment of another has time left to replay."""
    watchers_known: bool = False
    """The verifier knows its watchers before its verdict."""
    catches_of_lies: bool = True
    """A commitment that names the truth is paid for a lie as for a planted error, wherever that is decided."""


def over_drawn(average: float, seeds: int, worth: Callable[[int], float]) -> float:
    """The mean of ``worth(k)``, k being drawn watchers: Poisson of this average, the fewest of ``seeds`` draws.

    ``worth`` falls with k and levels off. Tickets are drawn one by one, and where ``worth`` is convex that brings less.
    """
    mean, chance, above, k = 0.0, exp(-average), 1.0, 0
    while above > 1e-15:
        beyond = max(0.0, above - chance)
        mean += (above**seeds - beyond**seeds) * worth(k)
        k, above = k + 1, beyond
        chance *= average / k
    return mean


def temptations(segments: int, least: int, saved: float) -> list[int]:
    """The numbers of fabricated segments of which one pays best: theorem 3 of docs/spec/game.md."""
    # From so many on one more saves nothing more.
    enough = floor(1 / max(saved, 1 / segments) + 1e-9)
    return sorted({k for k in (1, enough, enough + 1, least - 1, least) if 1 <= k <= segments})
