"""The auction: a true bid is the best one whatever the others do; prices are bounded; admission grows step by step.

A submitter's own bid brings no more than a lower maximum price.
"""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lab.incentives.auction_rules import (
    MIN_PROMISE,
    Admission,
    AuctionTerms,
    Award,
    award,
    bids,
    forfeited,
    rate_of,
    round_id,
    score,
    shills,
)
from pol.errors import ProtocolError
from pol.incentives.auction import Bid, commitment

pytestmark = pytest.mark.rules

TERMS = AuctionTerms(
    maximum=10_000,
    solver_stake=5_001,
    second_price=1,
    work_units=1_000,
    submitter=b"s" * 20,
    verifier=b"v" * 20,
    window=600,
    training_window=7_200,
    thresholds=b"t" * 32,
)
ADMISSION = Admission(entry_work=1_000, growth=4)
SECONDS = st.integers(MIN_PROMISE, 7_200)


def account(index: int) -> bytes:
    return index.to_bytes(20)


def admitted(terms: AuctionTerms, bids: list[Bid]) -> list[Bid]:
    """Those whose score the auction takes."""
    return [bid for bid in bids if score(bid, terms.second_price) <= terms.maximum]


@st.composite
def markets(draw: st.DrawFn) -> tuple[AuctionTerms, list[Bid]]:
    """Terms and admissible bids for them; few numbers, so that scores are often equal."""
    scale = draw(st.sampled_from([1, 7, 10**18]))
    second_price = draw(st.integers(0, 3)) * scale
    terms = replace(TERMS, maximum=draw(st.integers(200, 30_000)) * scale, second_price=second_price)
    offers = draw(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([60, 100, 1_000, 7_200])), max_size=8))
    bids = [Bid(account(i), price * 100 * scale, seconds) for i, (price, seconds) in enumerate(offers)]
    return terms, admitted(terms, bids)


MACHINES = st.dictionaries(SECONDS, st.integers(0, 20_000), min_size=1, max_size=4)
"""What a training costs a solver, by the seconds that it promises."""
ME, MYSELF = account(100), account(101)


def gain(terms: AuctionTerms, bids: list[Bid], costs: dict[int, int]) -> int:
    """Of whoever is ``ME`` and ``MYSELF``: what it is paid less what the training costs it."""
    won = award(terms, admitted(terms, bids))
    if won is None or won.bidder not in (ME, MYSELF):
        return 0
    return won.price - costs[won.seconds]


def truth(terms: AuctionTerms, costs: dict[int, int]) -> Bid:
    """The promise whose cost and time are least to the terms, for what it costs."""
    seconds = min(costs, key=lambda s: costs[s] + terms.second_price * s)
    return Bid(ME, costs[seconds], seconds)


def placed(others: list[Bid], mine: list[tuple[int, Bid]]) -> list[Bid]:
    """Bids in the order of their commitments."""
    bids = list(others)
    for place, bid in mine:
        bids.insert(place % (len(bids) + 1), bid)
    return bids


@given(market=markets(), costs=MACHINES, place=st.integers(0, 8), price=st.integers(0, 1 << 128), data=st.data())
def test_no_other_bid_gains_more_than_the_true_one(
    market: tuple[AuctionTerms, list[Bid]], costs: dict[int, int], place: int, price: int, data: st.DataObject
) -> None:
    terms, others = market
    mine = truth(terms, costs)
    honest = gain(terms, placed(others, [(place, mine)]), costs)
    assert honest >= 0
    prices = st.one_of(
        st.integers(0, terms.maximum), st.integers(max(0, mine.price - 3), mine.price + 3), st.just(price % (1 << 128))
    )
    lie = Bid(ME, data.draw(prices), data.draw(st.sampled_from(sorted(costs))))
    assert gain(terms, placed(others, [(data.draw(st.integers(0, 8)), lie)]), costs) <= honest


@given(market=markets(), costs=MACHINES, data=st.data())
def test_two_bids_of_one_person_gain_nothing(
    market: tuple[AuctionTerms, list[Bid]], costs: dict[int, int], data: st.DataObject
) -> None:
    terms, others = market
    honest = gain(terms, [truth(terms, costs), *others], costs)
    lies = [
        Bid(who, data.draw(st.integers(0, terms.maximum)), data.draw(st.sampled_from(sorted(costs))))
        for who in (ME, MYSELF)
    ]
    places = [data.draw(st.integers(0, 8)) for _ in lies]
    assert gain(terms, placed(others, list(zip(places, lies, strict=True))), costs) <= honest


@given(market=markets())
def test_the_price_is_bounded_by_bid_maximum_and_second_score(market: tuple[AuctionTerms, list[Bid]]) -> None:
    terms, bids = market
    won = award(terms, bids)
    assert (won is None) == (not bids)
    if won is None:
        return
    scores = [score(bid, terms.second_price) for bid in bids]
    first = scores.index(min(scores))
    assert (won.bidder, won.seconds) == (bids[first].bidder, bids[first].seconds)
    assert bids[first].price <= won.price <= terms.maximum
    rest = scores[:first] + scores[first + 1 :]
    assert won.price + terms.second_price * won.seconds == min([*rest, terms.maximum])


@given(market=markets(), data=st.data())
def test_a_further_bid_never_raises_what_the_winner_is_paid(
    market: tuple[AuctionTerms, list[Bid]], data: st.DataObject
) -> None:
    """Nor does it lower it below the winner's bid, whoever places it: the submitter, too."""
    terms, bids = market
    assume(bids)
    before = award(terms, bids)
    further = Bid(account(99), data.draw(st.integers(0, terms.maximum)), data.draw(SECONDS))
    assume(admitted(terms, [further]))
    after = award(terms, placed(bids, [(data.draw(st.integers(0, 8)), further)]))
    assert before is not None
    assert after is not None
    if after.bidder == before.bidder:
        assert after.price <= before.price
    else:
        assert after.bidder == further.bidder


def test_ties_go_to_the_earlier_commitment_for_its_own_price() -> None:
    slow, fast = Bid(account(1), 2_000, 3_600), Bid(account(2), 3_800, 1_800)
    assert award(TERMS, [slow, fast]) == Award(account(1), 2_000, 3_600)
    assert award(TERMS, [fast, slow]) == Award(account(2), 3_800, 1_800)


def test_a_single_bid_is_paid_up_to_the_maximum_score_and_not_the_maximum_price() -> None:
    """Else the slower of two promises, which costs its solver less, would be paid as much."""
    assert award(TERMS, [Bid(account(1), 10, 100)]) == Award(account(1), 9_900, 100)
    assert award(TERMS, [Bid(account(1), 10, 7_200)]) == Award(account(1), 2_800, 7_200)
    assert award(TERMS, []) is None


@given(rate=st.integers(0, 1 << 80), work=st.integers(1, (1 << 128) - 1))
def test_the_shortest_promise_is_the_first_that_is_admitted(rate: int, work: int) -> None:
    least = ADMISSION.shortest_promise(rate, work)
    if least is None:
        assert not ADMISSION.admits(rate, work, (1 << 32) - 1)
        return
    assert ADMISSION.admits(rate, work, least)
    assert least == MIN_PROMISE or not ADMISSION.admits(rate, work, least - 1)


@given(steps=st.integers(1, 12))
def test_each_own_task_raises_the_rate_by_the_factor_of_growth_at_most(steps: int) -> None:
    """A solver that submits tasks to itself: the fastest climb there is."""
    rate, work = 0, ADMISSION.entry_work
    for step in range(steps):
        assert ADMISSION.admits(rate, work, MIN_PROMISE)
        rate = rate_of(work, MIN_PROMISE)
        assert rate <= rate_of(ADMISSION.entry_work, MIN_PROMISE) * ADMISSION.growth**step
        # The largest task that can be promised in the shortest time.
        work = (rate * ADMISSION.growth + 1) * MIN_PROMISE >> 32
        assert not ADMISSION.admits(rate, work + 1, MIN_PROMISE)


@given(stake=st.integers(1, (1 << 128) - 1))
def test_a_sealed_bid_costs_something_and_not_more_than_a_sixteenth_and_one(stake: int) -> None:
    assert 0 < forfeited(stake) <= stake
    assert 16 * (forfeited(stake) - 1) < stake <= 16 * forfeited(stake)


def test_commitments_differ_in_everything() -> None:
    def id_of(chain: int = 1, auction: int = 2, desk: int = 3, task: int = 4, number: int = 5) -> bytes:
        return round_id(chain, account(auction), account(desk), task.to_bytes(32), number, TERMS)

    ids = [id_of(), id_of(chain=9), id_of(auction=9), id_of(desk=9), id_of(task=9), id_of(number=9)]
    other = replace(TERMS, thresholds=b"u" * 32)
    ids.append(round_id(1, account(2), account(3), (4).to_bytes(32), 5, other))
    bid, salt = Bid(ME, 1, 100), bytes(32)
    seals = [commitment(round_, bid, salt) for round_ in ids]
    seals += [commitment(ids[0], changed, salt) for changed in (Bid(MYSELF, 1, 100), Bid(ME, 2, 100), Bid(ME, 1, 101))]
    seals.append(commitment(ids[0], bid, b"1" * 32))
    assert len(set(seals)) == len(seals)


def test_numbers_that_no_bid_has() -> None:
    assert Bid(ME, 0, 1).price < Bid(ME, (1 << 128) - 1, (1 << 32) - 1).price  # the least and the greatest
    for bidder, price, seconds in ((b"", 1, 100), (ME, -1, 100), (ME, 1 << 128, 100), (ME, 1, 0), (ME, 1, 1 << 32)):
        with pytest.raises(ProtocolError):
            Bid(bidder, price, seconds)
    with pytest.raises(ProtocolError, match="salt"):
        commitment(bytes(32), Bid(ME, 1, 100), b"salt")


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
