"""Every row of the settlement table: each wei in is a wei out, and nobody profits from the whole of a slash."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.payouts import Deal, Payout

AMOUNT = st.integers(0, (1 << 100) - 1)
DEAL = Deal(fee=1_000, price=700, verifier_fee=100, solver_stake=501, verifier_stake=303, bond=51)


@st.composite
def deals(draw: st.DrawFn) -> Deal:
    verifier_fee = draw(AMOUNT)
    price = draw(AMOUNT)
    fee = price + verifier_fee + draw(AMOUNT)
    return Deal(fee, price, verifier_fee, 2 * verifier_fee + draw(AMOUNT), draw(AMOUNT), draw(AMOUNT))


ROWS: list[tuple[Callable[[Deal], Payout], Callable[[Deal], int], Payout]] = [
    (
        payouts.accepted,
        lambda d: d.fee + d.solver_stake + d.verifier_stake,
        Payout(submitter=200, solver=1_201, verifier=403),
    ),
    (
        payouts.rejected,
        lambda d: d.fee + d.solver_stake + d.verifier_stake,
        Payout(submitter=900 + 250, verifier=403, treasury=251),
    ),
    (
        payouts.challenger_right,
        lambda d: d.verifier_stake + d.bond,
        Payout(challenger=51 + 151, treasury=152),
    ),
    (payouts.challenger_wrong, lambda d: d.bond, Payout(verifier=25, treasury=26)),
    (
        payouts.solver_defaulted,
        lambda d: d.fee + d.solver_stake + d.verifier_stake,
        Payout(submitter=1_000 + 250, verifier=303, treasury=251),
    ),
    (payouts.verifier_defaulted, lambda d: d.verifier_stake, Payout(submitter=151, treasury=152)),
    (payouts.cancelled, lambda d: d.fee + d.verifier_stake, Payout(submitter=1_000, verifier=303)),
]
NAMES = [row[0].__name__ for row in ROWS]


@pytest.mark.parametrize(("pay", "released", "expected"), ROWS, ids=NAMES)
def test_row(pay: Callable[[Deal], Payout], released: Callable[[Deal], int], expected: Payout) -> None:
    assert pay(DEAL) == expected
    assert expected.total == released(DEAL)


@pytest.mark.parametrize(("pay", "released", "_"), ROWS, ids=NAMES)
@given(deal=deals())
def test_every_wei_in_is_a_wei_out(
    pay: Callable[[Deal], Payout], released: Callable[[Deal], int], _: Payout, deal: Deal
) -> None:
    payout = pay(deal)
    assert payout.total == released(deal)
    assert min(payout.submitter, payout.solver, payout.verifier, payout.challenger, payout.treasury) >= 0


@given(deal=deals())
def test_a_rejection_never_costs_the_submitter(deal: Deal) -> None:
    assert payouts.rejected(deal).submitter >= deal.fee


@given(deal=deals())
def test_nobody_gets_more_than_half_of_what_another_lost(deal: Deal) -> None:
    assert 2 * (payouts.challenger_right(deal).challenger - deal.bond) <= deal.verifier_stake
    assert 2 * (payouts.challenger_wrong(deal).verifier) <= deal.bond
    assert 2 * (payouts.verifier_defaulted(deal).submitter) <= deal.verifier_stake
    assert 2 * (payouts.solver_defaulted(deal).submitter - deal.fee) <= deal.solver_stake
    assert payouts.rejected(deal).verifier == deal.verifier_fee + deal.verifier_stake


@given(deal=deals())
def test_disputing_oneself_costs_half_of_the_stake(deal: Deal) -> None:
    """Verifier and challenger are one person: it gets back less than it put in, whoever of the two wins."""
    right, wrong = payouts.challenger_right(deal), payouts.challenger_wrong(deal)
    assert deal.bond + deal.verifier_stake - right.challenger == (deal.verifier_stake + 1) // 2
    assert deal.bond - wrong.verifier == (deal.bond + 1) // 2


def test_holding_a_dispute_costs_as_much_as_all_times_before() -> None:
    """A verifier and its own challenger burn half of a bond that doubles, until it stops doubling."""
    bonds = [payouts.bond_after(DEAL.bond, failures) for failures in range(67)]
    assert bonds[:4] == [51, 102, 204, 408]
    assert all(later == 2 * earlier for earlier, later in pairwise(bonds[:65]))
    assert bonds[64:] == [51 << 64] * 3
    burnt = sum(payouts.challenger_wrong(replace(DEAL, bond=bond)).treasury for bond in bonds[:10])
    assert burnt >= 51 * (2**10 - 1) // 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": 901}, "lower the price"),
        ({"solver_stake": 199}, "raise the stake"),
        ({"bond": -1}, "bond is not"),
        ({"fee": 1 << 128}, "fee is not"),
    ],
)
def test_an_impossible_deal_is_refused(change: dict[str, int], message: str) -> None:
    amounts = {**vars(DEAL), **change}
    with pytest.raises(ProtocolError, match=message):
        Deal(**amounts)
