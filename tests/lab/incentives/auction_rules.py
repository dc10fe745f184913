"""The solvers' reverse auction: integer mirror of `contracts/incentives/{Auction,AuctionRules,Throughput}.sol`.

Amounts are integers in the smallest unit of the asset, times are seconds, addresses 20 bytes. The rules, and why a
true bid is the best one, are in docs/spec/incentives.md, "The auction". Source: W. Vickrey, Counterspeculation,
auctions, and competitive sealed tenders, 1961. What a bid is worth (docs/spec/game.md, "Bids"): true bids, shaded
ones, and a submitter's own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from lab.incentives.payoffs import Choice
from pol.incentives import payouts
from pol.incentives.abi import abi_hash
from pol.incentives.auction import Bid

MIN_PROMISE = 60
"""Shortest promise."""
FORFEIT_PART = 16
"""A bid that is not revealed costs the stake divided by this."""
RATE_SECONDS = 1 << 32
"""A rate is the number of work units in so many seconds."""


@dataclass(frozen=True)
class AuctionTerms:
    """What a desk asks bids for in one round; the fields are those of the contract, in its order."""

    maximum: int
    """No score is above it, so no price is either."""
    solver_stake: int
    second_price: int
    """What one second of the promise adds to the score."""
    work_units: int
    submitter: bytes
    verifier: bytes
    window: int
    training_window: int
    thresholds: bytes
    """Hash of the thresholds that solvers agree to by their bids."""


@dataclass(frozen=True)
class Award:
    """Who trains, what it is paid, and in how many seconds."""

    bidder: bytes
    price: int
    seconds: int


@dataclass(frozen=True)
class Admission:
    """Who is believed to train how fast; both numbers are fixed when the auction is deployed."""

    entry_work: int
    """Tasks of no more work units are open to everybody."""
    growth: int
    """How many times faster than its best task a solver may promise to be."""

    def admits(self, rate: int, work_units: int, seconds: int) -> bool:
        """Whether who has proven ``rate`` is believed to do so much in ``seconds``."""
        return work_units <= self.entry_work or rate_of(work_units, seconds) <= rate * self.growth

    def shortest_promise(self, rate: int, work_units: int) -> int | None:
        """Fewest seconds that the auction lets who has proven ``rate`` promise; None if it admits no promise."""
        if work_units <= self.entry_work:
            return MIN_PROMISE
        # The least integer s with floor(w / s) <= r is floor(w / (r + 1)) + 1.
        least = max(MIN_PROMISE, work_units * RATE_SECONDS // (rate * self.growth + 1) + 1)
        return least if least < 1 << 32 else None


def rate_of(work_units: int, seconds: int) -> int:
    """Work units per 2^32 seconds of a promise, rounded down."""
    return work_units * RATE_SECONDS // seconds


def score(bid: Bid, second_price: int) -> int:
    """What bids are compared by; less is better."""
    return bid.price + second_price * bid.seconds


def award(terms: AuctionTerms, bids: Iterable[Bid]) -> Award | None:
    """The winner among admissible bids in the order of their commitments, or None if there are none.

    The winner's price makes its score equal the second one: the smallest of the others, or the maximum.
    """
    ranked = sorted(bids, key=lambda bid: score(bid, terms.second_price))
    if not ranked:
        return None
    best = ranked[0]
    second = min([score(bid, terms.second_price) for bid in ranked[1:2]] + [terms.maximum])
    return Award(best.bidder, second - terms.second_price * best.seconds, best.seconds)


def forfeited(stake: int) -> int:
    """What is lost of a stake whose bid nobody has revealed; rounded up, so that it is never nothing."""
    return -(-stake // FORFEIT_PART)


def round_id(chain_id: int, auction: bytes, desk: bytes, task_id: bytes, number: int, terms: AuctionTerms) -> bytes:
    """The id of a round, which binds its terms: keccak-256 over the words that Solidity's `abi.encode` gives."""
    return abi_hash(chain_id, auction, desk, task_id, number, *(getattr(terms, field.name) for field in fields(terms)))


def bids(terms: AuctionTerms, cost: int, seconds: int, others: Sequence[Bid], prices: Iterable[int]) -> Choice:
    """A solver that trains for ``cost`` in ``seconds``: its true bid against all prices, two bids, and none.

    ``others`` are all other bids of the round; nobody knows them before, and here every deviation does.
    """
    bidder = b"\x01" * 20

    def worth(*own: int) -> float:
        made = [Bid(bidder, price, seconds) for price in own]
        admitted = [bid for bid in (*made, *others) if score(bid, terms.second_price) <= terms.maximum]
        won = award(terms, admitted)
        return float(won.price - cost) if won is not None and won.bidder == bidder else 0.0

    offered = sorted({*prices} - {cost})
    deviations = {f"bid {price}": worth(price) for price in offered}
    deviations |= {f"bid {price} too": worth(cost, price) for price in offered}
    deviations["hide the bid"] = -float(forfeited(terms.solver_stake))
    return Choice("solver", "bids", worth(cost), deviations)


def shills(terms: AuctionTerms, others: Sequence[Bid], prices: Iterable[int]) -> Choice:
    """A submitter that bids under another name, beside naming that price as its maximum: what is left of the value.

    If its bid wins nobody trains, and the stake is gone but for the submitter's share. The value is the maximum of the
    terms; the honest choice is the best maximum below it.
    """
    shill, seconds = b"\x02" * 20, min(bid.seconds for bid in others)
    lost = terms.solver_stake - payouts.share_down(terms.solver_stake, payouts.SUBMITTER_OF_SOLVER_STAKE)

    def left(made: Sequence[Bid], maximum: int) -> float:
        admitted = [bid for bid in made if score(bid, terms.second_price) <= maximum]
        won = award(replace(terms, maximum=maximum), admitted)
        if won is None:
            return 0.0
        return float(terms.maximum - won.price if won.bidder != shill else -lost)

    honest, shilled = 0.0, {}
    for price in sorted({*prices, terms.maximum}):
        bid = Bid(shill, max(0, price - terms.second_price * seconds), seconds)
        # Its seconds alone can cost more than the price: the maximum to compare with is the bid's own score.
        honest = max(honest, left(others, price), left(others, score(bid, terms.second_price)))
        shilled[f"bid {price}"] = left([*others, bid], terms.maximum)
    return Choice("submitter", "bids against its solvers", honest, shilled)
