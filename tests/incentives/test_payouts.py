"""Every row of the settlement table: each wei in is a wei out, and nobody profits from the whole of a slash."""

from collections.abc import Callable

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
    (payouts.challenge_moot, lambda d: d.bond, Payout(challenger=51)),
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


def test_bonds_double_up_to_what_a_challenger_wins() -> None:
    """However many challenges a verdict has seen, who is right risks no more than it wins."""
    assert [payouts.bond_after(20, 303, earlier) for earlier in range(5)] == [20, 40, 80, 151, 151]
    assert [payouts.bond_after(19, 303, earlier) for earlier in range(5)] == [19, 38, 76, 151, 151]
    assert payouts.bond_after(19, 303, 2**32 - 1) == 151


@given(stake=st.integers(2, 1 << 128), place=st.integers(0, (1 << 128) - 1), earlier=st.integers(0, 100))
def test_no_bond_exceeds_the_reward_and_none_is_below_that_of_the_terms(stake: int, place: int, earlier: int) -> None:
    low, high = -(-stake // 16), stake // 2
    bond = low + place % (high - low + 1)
    assert bond <= payouts.bond_after(bond, stake, earlier) <= payouts.bond_after(bond, stake, earlier + 1) <= high
    assert payouts.bond_after(bond, stake, payouts.MAX_DOUBLINGS) == high


@given(deal=deals())
def test_a_moot_challenge_costs_nothing(deal: Deal) -> None:
    assert payouts.challenge_moot(deal) == Payout(challenger=deal.bond)


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
