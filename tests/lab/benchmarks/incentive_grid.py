"""Honesty on a grid of tasks, planted errors that are drawn, jackpots of split identities."""

from collections.abc import Iterator
from itertools import product
from math import inf
from random import Random
from typing import Any

from lab.benchmarks.figure import Figure
from lab.incentives.amounts import UNIT
from lab.incentives.auction_rules import AuctionTerms, bids, shills
from lab.incentives.coalition_search import MOST_SHARE, SHARES, reverted_found, worst
from lab.incentives.flood_search import REVERTED as FLOODS_REVERTED
from lab.incentives.flood_search import reverted_of_floods, worst_flood
from lab.incentives.griefing import burn_ratio
from lab.incentives.parameter_design import Design, design
from lab.incentives.rounds_search import REVERTED as ROUNDS_REVERTED
from lab.incentives.rounds_search import reverted_of_rounds, worst_of_rounds
from lab.incentives.rule_variants import REVERTED
from lab.incentives.task_needs import EXAMPLE, Needs
from lab.incentives.ticket_weights import Weights
from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash
from pol.incentives.auction import Bid
from pol.incentives.forced_errors import LARGEST_RATE, ONE, Assignment
from pol.incentives.jackpot import JackpotRules
from pol.incentives.sortition import DrawnDuty, TicketDraw

DRAWN = 100_000
RULES_AS_THEY_WERE = len(REVERTED) + len(ROUNDS_REVERTED) + len(FLOODS_REVERTED)
IDENTITIES = 32
AUCTIONS = 1_000
GRID: dict[str, tuple[Any, ...]] = {
    "training": (1, 20, 5_000),
    "replay": (0.5, 1.0, 3.0),
    "gain": (0, 1, 10),
    "fraction": (0.02, 0.1, 0.5),
    "segments": (50, 200),
    "adversary": ((0.0, 0), (0.0, 1), (0.25, 0), (0.25, 1), (0.45, 0)),
    "confidence": (0.9, 0.99),
}
"""Of tasks: cost of the training; its replay and the gain of a cheat as multiples; the least cheat; the adversary's
share of the tickets and bits of the beacon: with more of both it decides whose word counts (docs/spec/game.md)."""


def incentive_figures() -> dict[str, Figure]:
    """All figures of the area."""
    found = Honesty()
    for point in designs():
        found.count(point)
    usual = design(EXAMPLE)
    bit = biased(usual)
    rounds_and_floods = worst_of_rounds().excess, worst_flood().profit
    most = max(*rounds_and_floods, *(worst(usual.needs, share).found.excess for share in SHARES))
    reverted = len(reverted_found(usual.needs)) + len(reverted_of_rounds()) + len(reverted_of_floods())
    return {
        "grid_points": Figure(found.points, "tasks with parameters"),
        "honest_best_response_share": Figure(found.honest / found.points, "of them, every role and deviation"),
        "withholding_worse_share": Figure(found.withholding_worse / found.points, "of them"),
        "least_margin": Figure(found.least_margin, "of the price"),
        "attacker_burn_ratio": Figure(found.least_burn, "times what it costs others, at least"),
        "forced_error_rate_deviation": Figure(rate_deviation(), f"of the rate, {DRAWN} draws"),
        "false_bid_gain_wei": Figure(false_bid_gain(), f"wei at most, {AUCTIONS} auctions"),
        "sybil_jackpot_excess_wei": Figure(sybil_excess(), f"wei, 1 to {IDENTITIES} identities"),
        "one_bit_forced_error_rate": Figure(bit[0], f"instead of {usual.game.rate:.3f}"),
        "one_bit_cheat_drawn": Figure(bit[1], f"instead of {usual.detection:.3f}"),
        "coalition_profit_max": Figure(
            most, f"wei a task or a plan of rounds above duty, rules as decided, up to {MOST_SHARE:.0%} of tickets"
        ),
        "reverted_rules_found": Figure(reverted, f"of {RULES_AS_THEY_WERE} rules as they were: an attack"),
    }


def designs() -> Iterator[Design]:
    """All points of the grid for which there are parameters."""
    for training, replay, gain, fraction, segments, (coalition, bits), confidence in product(*GRID.values()):
        cost = int(training * UNIT)
        needs = Needs(
            100 * cost,
            int(cost * replay),
            int(cost * gain),
            train_cost=cost,
            segments=int(segments),
            cheat_fraction=fraction,
            coalition=coalition,
            beacon_bits=int(bits),
            confidence=confidence,
            transaction=UNIT // 2000,
            dispute=UNIT // 100,
            train_seconds=2 * 86_400,
        )
        try:
            yield design(needs)
        except ProtocolError:
            continue


class Honesty:
    """What was found on the grid so far."""

    def __init__(self) -> None:
        self.points = self.honest = self.withholding_worse = 0
        self.least_margin = self.least_burn = inf

    def count(self, found: Design) -> None:
        """Try every deviation of every role."""
        self.points += 1
        choices = [choice for choice in found.game.choices() if choice.others]
        margin = min(choice.margin for choice in choices)
        self.honest += margin > 0
        self.least_margin = min(self.least_margin, margin / found.stakes.price)
        self.withholding_worse += all(
            value < choice.honest
            for choice in choices
            for action, value in choice.others.items()
            if action.startswith("withhold")
        )
        self.least_burn = min(self.least_burn, burn_ratio(found.game))


def rate_deviation() -> float:
    """How far the share of planted errors is from its rate, as a part of it."""
    forced = 0
    for number in range(DRAWN):
        word = number.to_bytes(32)
        forced += Assignment(abi_hash("seed", number), word, 1, abi_hash("secret", number)).is_forced(LARGEST_RATE)
    return abs(forced / DRAWN * ONE / LARGEST_RATE - 1)


def false_bid_gain() -> float:
    """The most that a false bid, a second one, or a submitter's own has brought beyond the true one or its maximum."""
    random, gain, prices = Random(1), 0.0, range(500, 10_000, 500)
    for _ in range(AUCTIONS):
        terms = AuctionTerms(
            10_000, random.randrange(1, 10**6), random.randrange(3), 1, b"s" * 20, b"v" * 20, 60, 3_600, bytes(32)
        )
        rivals = [
            Bid(number.to_bytes(20), random.randrange(10_000), random.randrange(60, 3_600))
            for number in range(3, random.randrange(4, 9))
        ]
        own = bids(terms, random.randrange(10_000), random.randrange(60, 3_600), rivals, prices)
        gain = max(gain, -own.margin, -shills(terms, rivals, prices).margin)
    return gain


def sybil_excess() -> int:
    """The most that splitting 32 tickets, all of which watch and catch, adds to what one identity is paid."""
    jackpot, reserved = JackpotRules(IDENTITIES, 2 * IDENTITIES, LARGEST_RATE), 10**20 + 7
    paid = []
    for identities in range(1, IDENTITIES + 1):
        weights = Weights()
        for number in range(identities):
            weights.set(abi_hash("identity", number)[:20], (IDENTITIES + number) // identities, 0)
        drawn = weights.watching(TicketDraw(DrawnDuty.WATCH, bytes(32), 1, 1, abi_hash("seed", identities)), IDENTITIES)
        paid.append(jackpot.paid(reserved, len(drawn)))
    return max(0, max(paid) - paid[0])


def biased(found: Design) -> tuple[float, float]:
    """With one bit of the beacon: how often a verifier errs that likes to, and how often a cheat is drawn."""
    return 1 - (1 - found.game.rate) ** 2, found.detection**2
