"""What words that a solver does not serve are worth: docs/spec/market.md, "Not served"."""

import re
from dataclasses import astuple
from pathlib import Path

import pytest

from pol.incentives import payouts
from pol.incentives.payouts import Deal

pytestmark = pytest.mark.rules

SPECIFICATION = Path(__file__).parent.parent.parent / "docs" / "spec" / "market.md"
LOSS = 1_000_000
"""Stake and price of the solver together."""
BOND = payouts.unserved_bond(LOSS // 5, LOSS - LOSS // 5, LOSS)
DEAL = Deal(LOSS // 5, LOSS // 5, 0, LOSS - LOSS // 5, LOSS, 0)
SHARE = payouts.not_served(DEAL).challenger - BOND


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
    assert 2 * 0.3 * SHARE / DEAL.solver_stake == pytest.approx(0.23, abs=0.005)
    assert 2 * 0.25 * SHARE / DEAL.solver_stake == pytest.approx(0.19, abs=0.005)


@pytest.mark.parametrize(("price", "stake", "verifies"), [(1, 1, 8), (7, 0, 9), (1 << 112, 1 << 112, 1 << 112)])
def test_bonds_and_shares_end_at_the_stakes(price: int, stake: int, verifies: int) -> None:
    paid = payouts.not_served(Deal(price, price, 0, stake, verifies, 0))
    assert min(astuple(paid)) >= 0
    assert payouts.unserved_bond(price, stake, verifies) <= verifies
    assert paid.total == stake + verifies + payouts.unserved_bond(price, stake, verifies)
