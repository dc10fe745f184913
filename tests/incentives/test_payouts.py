"""Every row of the settlement table: each wei in is a wei out, and nobody profits from the whole of a slash.

And what words that a solver does not serve are worth: docs/spec/market.md, "Not served".
"""

import re
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.payouts import Deal, Payout

pytestmark = pytest.mark.rules

AMOUNT = st.integers(0, 1 << 100)
# The treasury's part of a maximum price of 1001 is 6, of a price of 701 it is 4.
DEAL = Deal(maximum=1_001, price=701, verifier_fee=100, solver_stake=501, verifier_stake=303, bond=51, tax=31, share=25)
EXACT = replace(DEAL, profiled=False)


@st.composite
def deals(draw: st.DrawFn) -> Deal:
    verifier_fee, price, tax = draw(AMOUNT), draw(AMOUNT), draw(AMOUNT)
    return Deal(
        maximum=price + draw(AMOUNT),
        price=price,
        verifier_fee=verifier_fee,
        solver_stake=2 * verifier_fee + 3 * tax + draw(AMOUNT),
        verifier_stake=draw(AMOUNT),
        bond=draw(AMOUNT),
        tax=tax,
        share=draw(AMOUNT),
        profiled=draw(st.booleans()),
    )


def left(deal: Deal) -> int:
    """Of the escrow, once a profiler is paid."""
    return deal.escrow - (deal.verifier_fee if deal.profiled else 0)


Row = tuple[Callable[[Deal], Payout], Callable[[Deal], int], Payout]
ROWS: dict[str, Row] = {
    "profile concluded": (payouts.profile_concluded, lambda d: d.verifier_fee + d.verifier_stake, Payout(holder=403)),
    "accepted": (
        payouts.accepted,
        lambda d: left(d) + d.solver_stake + d.verifier_stake,
        Payout(submitter=302, solver=1_202, holder=403, fund=31, treasury=4),
    ),
    "rejected": (
        payouts.rejected,
        lambda d: left(d) + d.solver_stake + d.verifier_stake,
        Payout(submitter=1_007 + 250, holder=403, fund=31 + 251),
    ),
    "challenger right": (
        payouts.challenger_right,
        lambda d: d.verifier_stake + d.bond,
        Payout(challenger=51 + 151, fund=152),
    ),
    "challenger wrong": (payouts.challenger_wrong, lambda d: d.bond, Payout(holder=25, fund=26)),
    "challenge moot": (payouts.challenge_moot, lambda d: d.bond, Payout(challenger=51)),
    "profile convicted": (payouts.profile_convicted, lambda d: d.verifier_stake, Payout(challenger=151, fund=152)),
    "error found": (payouts.error_found, lambda d: d.share, Payout(challenger=25)),
    "secret withheld": (payouts.secret_withheld, lambda d: d.verifier_stake, Payout(fund=303)),
    "secret leaked": (payouts.secret_leaked, lambda d: d.verifier_stake, Payout(challenger=151, fund=152)),
    "solver defaulted": (payouts.solver_defaulted, lambda d: d.solver_stake, Payout(submitter=250, fund=251)),
    "data withheld": (
        partial(payouts.data_withheld, stood=False),
        lambda d: d.solver_stake + d.verifier_stake,
        Payout(submitter=250, holder=303, challenger=31, fund=220),
    ),
    "data withheld after a verdict": (
        partial(payouts.data_withheld, stood=True),
        lambda d: d.solver_stake + d.verifier_stake,
        Payout(submitter=150, holder=403, challenger=31, fund=220),
    ),
    "not served": (
        payouts.not_served,
        lambda d: d.solver_stake + d.verifier_stake + d.word,
        Payout(holder=303 + 133, challenger=303 + 133, fund=235),
    ),
    "not served, withheld": (
        partial(payouts.not_served, withheld=True),
        lambda d: d.solver_stake + d.verifier_stake + d.word,
        Payout(submitter=142, holder=303 + 133, challenger=303 + 133, fund=93),
    ),
    "data withheld after a word and a verdict": (
        partial(payouts.data_withheld, stood=True, said=True),
        lambda d: d.solver_stake + d.verifier_stake + d.word,
        Payout(submitter=150, holder=403, challenger=303 + 133, fund=118),
    ),
    "a word contradicted": (payouts.word_contradicted, lambda d: d.word, Payout(fund=303)),
    "seat defaulted": (
        payouts.seat_defaulted,
        lambda d: d.verifier_stake,
        Payout(submitter=151, challenger=18, fund=134),
    ),
    "profiler defaulted": (payouts.profiler_defaulted, lambda d: d.verifier_stake, Payout(fund=303)),
    "abandoned with a verifier": (
        partial(payouts.abandoned, decided=True),
        lambda d: left(d) + d.solver_stake + d.verifier_stake,
        Payout(submitter=1_138 - 31, solver=501, holder=303, fund=31),
    ),
    "abandoned without one": (
        partial(payouts.abandoned, decided=False),
        lambda d: left(d) + d.solver_stake,
        Payout(submitter=1_138, solver=501),
    ),
    "cancelled before a seat": (
        partial(payouts.cancelled_unprofiled, seated=False),
        lambda d: d.escrow,
        Payout(submitter=1_238),
    ),
    "cancelled before a profile": (
        partial(payouts.cancelled_unprofiled, seated=True),
        lambda d: d.escrow + d.verifier_stake,
        Payout(submitter=1_238, holder=303),
    ),
    "cancelled before a bid": (payouts.cancelled_bidding, left, Payout(submitter=1_138)),
}


@pytest.mark.parametrize(("pay", "released", "expected"), ROWS.values(), ids=ROWS)
def test_row(pay: Callable[[Deal], Payout], released: Callable[[Deal], int], expected: Payout) -> None:
    assert pay(DEAL) == expected
    assert expected.total == released(DEAL)


@pytest.mark.parametrize(("pay", "released", "_"), ROWS.values(), ids=ROWS)
@given(deal=deals())
def test_every_wei_in_is_a_wei_out(
    pay: Callable[[Deal], Payout], released: Callable[[Deal], int], _: Payout, deal: Deal
) -> None:
    payout = pay(deal)
    assert payout.total == released(deal)
    assert min(astuple(payout)) >= 0


def test_who_waits_for_a_dead_beacon_behind_a_fallen_proof_loses_its_stake() -> None:
    """The objector has had its part before."""
    paid = payouts.abandoned(replace(DEAL, objected=40), decided=True)
    assert paid == Payout(submitter=1_138 - 31 + 250, holder=303, fund=31 + 501 - 250 - 40)


def test_the_escrow_holds_the_fee_of_a_profiler_where_there_is_one() -> None:
    assert DEAL.escrow == 1_001 + 6 + 2 * 100 + 31
    assert EXACT.escrow == DEAL.escrow - 100
    assert EXACT.bidding_escrow == DEAL.bidding_escrow == EXACT.escrow
    assert payouts.accepted(EXACT) == payouts.accepted(DEAL)
    assert payouts.rejected(EXACT) == payouts.rejected(DEAL)


@given(deal=deals())
def test_a_rejection_costs_the_submitter_tax_and_profile_at_most(deal: Deal) -> None:
    """The verdict itself is paid by the solver's stake."""
    assert payouts.rejected(deal).submitter >= deal.bidding_escrow - deal.tax


@given(deal=deals())
def test_nobody_but_the_fund_gains_by_what_was_repeated(deal: Deal) -> None:
    """The submitter chose the program: it pays for the verdict, and earns nothing of the stake."""
    paid = payouts.rejected_though_repeated(deal)
    assert paid.submitter == deal.bidding_escrow - deal.verifier_fee - deal.tax
    assert paid.fund == deal.tax + deal.solver_stake
    assert paid.total == payouts.rejected(deal).total


@given(deal=deals())
def test_a_price_is_paid_with_the_treasurys_part_of_it_and_nothing_else(deal: Deal) -> None:
    paid = payouts.rejected(deal).submitter - payouts.accepted(deal).submitter - deal.solver_stake // 2
    assert paid == deal.price + payouts.accepted(deal).treasury
    assert 0 <= 200 * payouts.accepted(deal).treasury - deal.price < 200


@given(deal=deals())
def test_no_party_gets_more_than_half_of_what_another_lost(deal: Deal) -> None:
    assert 2 * (payouts.challenger_right(deal).challenger - deal.bond) <= deal.verifier_stake
    assert 2 * payouts.challenger_wrong(deal).holder <= deal.bond
    assert 2 * payouts.profile_convicted(deal).challenger <= deal.verifier_stake
    assert 2 * payouts.secret_leaked(deal).challenger <= deal.verifier_stake
    assert 2 * payouts.seat_defaulted(deal).submitter <= deal.verifier_stake
    assert 2 * payouts.solver_defaulted(deal).submitter <= deal.solver_stake
    assert 2 * (payouts.not_served(deal).challenger - deal.word) <= deal.solver_stake
    assert 2 * (payouts.rejected(deal).submitter - deal.bidding_escrow + deal.verifier_fee + deal.tax) <= (
        deal.solver_stake
    )


@given(deal=deals())
def test_drawing_a_duty_anew_costs_the_tax(deal: Deal) -> None:
    """Solver, demander, submitter and verifier are one person, and withhold until the verifier has to err."""
    assert payouts.data_withheld(deal, stood=False).fund >= deal.tax
    for drawn, paid in enumerate(
        (payouts.data_withheld(deal, stood=False, said=True), payouts.not_served(deal, withheld=True)), 2
    ):
        assert paid.fund >= (drawn if paid.submitter else 1) * deal.tax


@given(deal=deals())
def test_disputing_oneself_costs_half_of_the_stake(deal: Deal) -> None:
    """Verifier and challenger are one person: it gets back less than it put in, whoever of the two wins."""
    right, wrong = payouts.challenger_right(deal), payouts.challenger_wrong(deal)
    assert deal.bond + deal.verifier_stake - right.challenger == (deal.verifier_stake + 1) // 2
    assert deal.bond - wrong.holder == (deal.bond + 1) // 2


def test_bonds_double_up_to_what_a_challenger_wins() -> None:
    """However many challenges a verdict has seen, who is right risks no more than it wins."""
    assert [payouts.bond_after(20, 303, earlier) for earlier in range(5)] == [20, 40, 80, 151, 151]
    assert [payouts.bond_after(19, 303, earlier) for earlier in range(5)] == [19, 38, 76, 151, 151]
    assert payouts.bond_after(19, 303, 2**32 - 1) == 151


@given(stake=st.integers(2, 1 << 112), place=st.integers(0, (1 << 112) - 1), earlier=st.integers(0, 100))
def test_no_bond_exceeds_the_reward_and_none_is_below_that_of_the_terms(stake: int, place: int, earlier: int) -> None:
    low, high = -(-stake // 16), stake // 2
    bond = low + place % (high - low + 1)
    assert bond <= payouts.bond_after(bond, stake, earlier) <= payouts.bond_after(bond, stake, earlier + 1) <= high
    assert payouts.bond_after(bond, stake, payouts.MAX_DOUBLINGS) == high


@given(work=st.integers(1, 1 << 112), price=st.integers(1, 1 << 112))
def test_the_maximum_price_is_rounded_up(work: int, price: int) -> None:
    assert 0 <= payouts.maximum_price(work, price) * payouts.WORK - work * price < payouts.WORK
    assert payouts.maximum_price(work, price) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": 1_002}, "lower the price"),
        ({"solver_stake": 199}, "cover the verifier's fee; raise the stake"),
        ({"tax": 221}, "cover the tax; raise the stake"),
        ({"bond": -1}, "bond is not"),
        ({"tax": (1 << 112) + 1}, "tax is not"),
    ],
)
def test_an_impossible_deal_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        replace(DEAL, **change)


SPECIFICATION = Path(__file__).parent.parent.parent / "docs" / "spec" / "market.md"
LOSS = 1_000_000
"""Stake and price of the solver together."""
BOND = payouts.unserved_bond(LOSS // 5, LOSS - LOSS // 5, LOSS)
WORDED = Deal(LOSS // 5, LOSS // 5, 0, LOSS - LOSS // 5, LOSS, 0)
SHARE = payouts.not_served(WORDED).challenger - BOND


def row(p: float) -> tuple[float, ...]:
    """The table at a share p of the tickets, in parts of the solver's loss."""
    noise, gain = 1 - (1 - p) ** 2, (1 - p) * SHARE - p * BOND
    harm, cost = p * p * LOSS, p * (1 - p) * BOND - 2 * p * p * SHARE
    return p, noise, gain / LOSS, harm / LOSS, cost / LOSS, cost / harm


def test_the_specification_has_these_numbers() -> None:
    section = SPECIFICATION.read_text().partition("## Not served\n")[2].partition("\n## ")[0]
    rows = [[float(cell) for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| 0\..+$", section, re.M)]
    assert [found[0] for found in rows] == [0.05, 0.1, 0.2, 0.25, 0.3]
    for found in rows:
        for written, computed in zip(found, row(found[0]), strict=True):
            assert written == pytest.approx(computed, rel=0.02, abs=6e-4)


@pytest.mark.parametrize("percent", range(1, 31))
def test_up_to_three_tenths_of_the_tickets_honest_words_pay_and_false_ones_do_not(percent: int) -> None:
    _, _, gain, harm, cost, _ = row(percent / 100)
    assert gain > 0
    assert cost > harm


def test_serving_friends_only_loses_where_the_stake_covers_price_and_gain() -> None:
    """The example of docs/spec/game.md."""
    price, gain, stake, accepted = 25, 10, 191, row(0.3)[1]
    assert accepted * (price + gain) - (1 - accepted) * stake == pytest.approx(-76, abs=0.5)


def test_a_model_for_nothing_costs_a_submitter_more_up_to_four_tenths() -> None:
    p, price = 0.42, LOSS / 3
    assert p * p * (2 * SHARE + price) < p * (1 - p) * BOND


def test_a_solver_with_friends_in_the_seats_keeps_less_than_a_quarter_of_its_stake() -> None:
    assert 2 * 0.3 * SHARE / WORDED.solver_stake == pytest.approx(0.23, abs=0.005)
    assert 2 * 0.25 * SHARE / WORDED.solver_stake == pytest.approx(0.19, abs=0.005)


@pytest.mark.parametrize(("price", "stake", "verifies"), [(1, 1, 8), (7, 0, 9), (1 << 112, 1 << 112, 1 << 112)])
def test_bonds_and_shares_end_at_the_stakes(price: int, stake: int, verifies: int) -> None:
    paid = payouts.not_served(Deal(price, price, 0, stake, verifies, 0))
    assert min(astuple(paid)) >= 0
    assert payouts.unserved_bond(price, stake, verifies) <= verifies
    assert paid.total == stake + verifies + payouts.unserved_bond(price, stake, verifies)
