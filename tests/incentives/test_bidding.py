"""A true bid is a best answer to all others, and a submitter's own bid brings no more than a lower maximum price."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.incentives.auction_rules import AuctionTerms
from lab.incentives.bidding import bids, shills
from pol.incentives.auction import Bid

pytestmark = pytest.mark.rules

MAXIMUM = 10_000
PRICES = range(500, MAXIMUM, 500)


def terms(second_price: int, stake: int) -> AuctionTerms:
    return AuctionTerms(MAXIMUM, stake, second_price, 1, b"\x0a" * 20, b"\x0b" * 20, 60, 3600, bytes(32))


@st.composite
def rivals(draw: st.DrawFn, least: int = 0) -> list[Bid]:
    made = draw(st.lists(st.tuples(st.integers(0, MAXIMUM), st.integers(60, 3600)), min_size=least, max_size=5))
    return [Bid(bytes([3 + number]) * 20, *bid) for number, bid in enumerate(made)]


@given(rivals(), st.integers(0, MAXIMUM), st.integers(60, 3600), st.integers(0, 2), st.integers(1, 10**6))
def test_a_true_bid_is_best(others: list[Bid], cost: int, seconds: int, second_price: int, stake: int) -> None:
    choice = bids(terms(second_price, stake), cost, seconds, others, PRICES)
    assert choice.margin >= 0
    assert choice.honest >= 0


def test_a_bid_above_cost_can_lose_what_a_true_one_wins() -> None:
    rival = Bid(b"\x03" * 20, 500, 60)
    choice = bids(terms(0, 1), 300, 60, [rival], PRICES)
    assert choice.honest == 200
    assert choice.others["bid 1000"] == 0
    assert choice.others["hide the bid"] < 0


@given(rivals(least=1), st.integers(0, 2), st.integers(1, 10**6))
@example([Bid(b"\x03" * 20, 0, 501)], 1, 1)  # no bid of 501 seconds has a score of 500
def test_a_submitter_gains_nothing_by_a_bid_of_its_own(others: list[Bid], second_price: int, stake: int) -> None:
    assert shills(terms(second_price, stake), others, PRICES).margin >= 0


def test_a_shill_that_wins_has_lost_its_stake() -> None:
    rival = Bid(b"\x03" * 20, 5_000, 60)
    assert shills(terms(0, 1_000), [rival], [1_000]).others["bid 1000"] == -500
