"""The solvers' reverse auction: integer mirror of `contracts/incentives/{Auction,AuctionRules,Throughput}.sol`.

Amounts are integers in the smallest unit of the asset, times are seconds, addresses 20 bytes. The rules, and why a
true bid is the best one, are in docs/spec/incentives.md, "The auction". Source: W. Vickrey, Counterspeculation,
auctions, and competitive sealed tenders, 1961.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from pol.commitments.keccak import HASH_SIZE
from pol.errors import ProtocolError
from pol.incentives.abi import ADDRESS, abi_hash
from pol.incentives.auction import Bid, require_size

MIN_WINDOW = 60
"""Shortest time for bids, and for revealing them."""
MAX_WINDOW = 90 * 86_400
"""Longest time for either."""
MIN_PROMISE = 60
"""Shortest promise."""
MAX_TRAINING_WINDOW = 365 * 86_400
"""Longest training."""
FORFEIT_PART = 16
"""A bid that is not revealed costs the stake divided by this."""
RATE_SECONDS = 1 << 32
"""A rate is the number of work units in so many seconds."""


@dataclass(frozen=True)
class AuctionTerms:
    """What a desk asks bids for in one round; the fields are those of the contract, in its order.

    Raises:
        ProtocolError: terms that the auction does not admit.
    """

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

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not 0 <= value < 1 << 128:
                raise ProtocolError(f"{field.name} is not a number below 2^128")
        require_size("submitter", self.submitter, ADDRESS)
        require_size("verifier", self.verifier, ADDRESS)
        require_size("thresholds", self.thresholds, HASH_SIZE)
        for name, holds in (
            ("maximum", self.maximum > 0),
            ("solver_stake", self.solver_stake > 0),
            ("second_price", self.second_price * MIN_PROMISE <= self.maximum),
            ("work_units", self.work_units > 0),
            ("submitter", any(self.submitter)),
            ("window", MIN_WINDOW <= self.window <= MAX_WINDOW),
            ("training_window", MIN_PROMISE <= self.training_window <= MAX_TRAINING_WINDOW),
        ):
            if not holds:
                raise ProtocolError(f"the auction refuses these terms: see the bounds of {name}")


@dataclass(frozen=True)
class Award:
    """Who trains, what it is paid, and in how many seconds."""

    bidder: bytes
    price: int
    seconds: int


@dataclass(frozen=True)
class Admission:
    """Who is believed to train how fast; both numbers are fixed when the auction is deployed.

    Raises:
        ProtocolError: numbers that the auction does not admit.
    """

    entry_work: int
    """Tasks of no more work units are open to everybody."""
    growth: int
    """How many times faster than its best task a solver may promise to be."""

    def __post_init__(self) -> None:
        if not 0 < self.entry_work < 1 << 128 or not 2 <= self.growth < 1 << 32:
            raise ProtocolError("entry_work is positive and below 2^128, growth at least 2 and below 2^32")

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


def reject_reason(terms: AuctionTerms, admission: Admission, bid: Bid, rate: int) -> str | None:
    """Why the auction does not let this bid be revealed, or None: it may win. ``rate`` is the bidder's."""
    if bid.bidder in (terms.submitter, terms.verifier):
        return "submitter and verifier of a task do not bid for it"
    if not MIN_PROMISE <= bid.seconds <= terms.training_window:
        return f"a promise is at least {MIN_PROMISE} and at most {terms.training_window} seconds"
    if score(bid, terms.second_price) > terms.maximum:
        return f"the score is above {terms.maximum}"
    if not admission.admits(rate, terms.work_units, bid.seconds):
        return "the bidder has finished nothing that suggests that it can keep this promise"
    return None


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
