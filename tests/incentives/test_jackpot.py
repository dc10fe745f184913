"""Shares, taxes, and that nobody earns with identities or with tasks of its own; errors on purpose.

Errors come as often as was meant, where the draw says, and nothing tells.
"""

from dataclasses import replace
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.claims.segment_claim import SegmentClaim
from pol.errors import ProtocolError
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE, ONE, Assignment, check_rate, rate_of
from pol.incentives.jackpot import JackpotRules

pytestmark = pytest.mark.rules

JACKPOTS = st.builds(
    lambda watchers, more, rate: JackpotRules(watchers, 2 * watchers + more, rate),
    st.integers(1, 64),
    st.integers(0, 64),
    st.integers(LEAST_RATE, LARGEST_RATE),
)
RESERVES = st.integers(256, (1 << 128) - 1)


def expected_catches(jackpot: JackpotRules, tickets: int) -> Fraction:
    """Mean of the catches that are paid if every ticket watches: binomial, cut at the shares."""
    chance = min(Fraction(jackpot.watchers, tickets), Fraction(1))
    return sum(
        (
            comb(tickets, drawn) * chance**drawn * (1 - chance) ** (tickets - drawn) * min(drawn, jackpot.shares)
            for drawn in range(tickets + 1)
        ),
        Fraction(0),
    )


@given(JACKPOTS, RESERVES, st.integers(0, 400))
def test_a_task_never_pays_more_than_it_has_reserved(jackpot: JackpotRules, reserved: int, catches: int) -> None:
    assert jackpot.paid(reserved, catches) <= reserved
    assert jackpot.share(reserved) >= 1


@given(JACKPOTS, RESERVES, st.integers(1, 32), st.integers(1, 64))
def test_identities_gain_nothing(jackpot: JackpotRules, reserved: int, names: int, tickets: int) -> None:
    """sybil_jackpot_excess_wei = 0: each name is paid its catches, however the same tickets are split."""
    paid, left = 0, jackpot.shares
    for number in range(names):
        held = tickets // names + (number < tickets % names)
        paid += jackpot.paid(reserved, min(held, left))
        left -= min(held, left)
    assert paid == jackpot.paid(reserved, tickets)


@given(JACKPOTS, RESERVES)
def test_the_tax_is_five_quarters_of_the_mean_cost_rounded_up(jackpot: JackpotRules, reserved: int) -> None:
    mean = Fraction(reserved * jackpot.watchers * jackpot.rate, jackpot.shares * ONE)
    assert 0 <= jackpot.tax(reserved) - mean * 5 / 4 < 1


@pytest.mark.parametrize("tickets", [1, 3, 4, 7, 40, 150])
@pytest.mark.parametrize(
    "jackpot", [JackpotRules(3, 6, LARGEST_RATE), JackpotRules(3, 8, 1 << 28), JackpotRules(1, 2, LEAST_RATE)]
)
def test_tasks_of_ones_own_do_not_pay(jackpot: JackpotRules, tickets: int) -> None:
    """With every ticket of all, and every watcher drawn catching, a task costs more tax than its jackpot pays."""
    reserved = 10**18
    gain = expected_catches(jackpot, tickets) * jackpot.share(reserved) * Fraction(jackpot.rate, ONE)
    assert gain < jackpot.tax(reserved)


@given(JACKPOTS, RESERVES)
def test_neither_lies_nor_leaks_of_ones_own_pay(jackpot: JackpotRules, reserved: int) -> None:
    """Whoever has all tickets, task and seat, and what a stake keeps it from.

    `jackpot * 2 * watchers <= stake * shares`, and half of a stake comes back through a friend. A lie pays all drawn
    tickets for certain. A leak, whenever no error is forced, asks for another seating until one is.
    """
    stake = -(-2 * reserved * jackpot.watchers // jackpot.shares)
    chance, catches = Fraction(jackpot.rate, ONE), jackpot.watchers * jackpot.share(reserved)
    assert catches - Fraction(stake, 2) <= 0
    assert catches - jackpot.tax(reserved) - Fraction(stake, 2) * (1 - chance) / chance < 0


@pytest.mark.parametrize(("watchers", "shares"), [(0, 6), (4, 7), (1, 0), (1, 1 << 32)])
def test_deployments_that_are_not(watchers: int, shares: int) -> None:
    assert JackpotRules(1, (1 << 32) - 1, LARGEST_RATE).share((1 << 32) - 1) == 1  # the most shares that there are
    with pytest.raises(ProtocolError, match="watchers"):
        JackpotRules(watchers, shares, LARGEST_RATE)


def test_rates_that_are_not() -> None:
    with pytest.raises(ProtocolError, match="rate"):
        JackpotRules(3, 6, LARGEST_RATE + 1)


@pytest.mark.parametrize("reserved", [0, 5, 1 << 128])
def test_reserves_that_are_not(reserved: int) -> None:
    with pytest.raises(ProtocolError, match="shares"):
        JackpotRules(3, 6, LARGEST_RATE).share(reserved)


WORD = b"w" * 32
CLAIM = SegmentClaim(3, b"s" * 32, b"e" * 32, b"r" * 32, (1, 2, 3), (4, 5, 6))


def assignment(number: int) -> Assignment:
    return Assignment(number.to_bytes(32, "big"), b"t" * 32, 1, WORD)


def frequency(rate: int, draws: int) -> float:
    return sum(assignment(number).is_forced(rate) for number in range(draws)) / draws


def test_the_rate_is_the_one_that_was_meant() -> None:
    """1e5 draws at one in four: a relative standard error of 0.55 %, so the bound of 1 % is 1.8 of them."""
    assert abs(frequency(LARGEST_RATE, 100_000) / 0.25 - 1) <= 0.01


def test_truebit_half_of_all_verdicts_are_wrong_where_a_tenth_was_meant() -> None:
    """2e4 draws at one in ten: a standard error of 0.0021."""
    assert abs(frequency(rate_of(Fraction(1, 10)), 20_000) - 0.1) < 3 * 0.0021


@pytest.mark.parametrize("rate", [0, LEAST_RATE - 1, LARGEST_RATE + 1, ONE])
def test_rates_have_bounds(rate: int) -> None:
    with pytest.raises(ProtocolError, match="out of bounds"):
        check_rate(rate)


def test_rates_within_their_bounds() -> None:
    assert rate_of(Fraction(1, 256)) == LEAST_RATE
    assert rate_of(Fraction(1, 4)) == LARGEST_RATE
    assert rate_of(Fraction(1, 10)) == 429_496_729


def test_every_claim_can_be_the_wrong_one() -> None:
    assert {assignment(number).index(32) for number in range(400)} == set(range(32))
    with pytest.raises(ProtocolError, match="at least one"):
        assignment(1).index(0)


def test_a_planted_error_differs_in_its_replay_alone() -> None:
    planted = assignment(1).plant(CLAIM)
    assert planted == replace(CLAIM, replay=assignment(1).error_root)
    assert planted.replay != CLAIM.replay


def test_nobody_else_can_say_what_is_planted() -> None:
    """Every word that goes into an error changes it."""
    one = assignment(1)
    others = [
        replace(one, seed=b"o" * 32),
        replace(one, task_id=b"o" * 32),
        replace(one, seating=2),
        replace(one, secret=b"o" * 32),
    ]
    assert len({one.error_root, *(other.error_root for other in others)}) == 5
    assert len({one.sealed(WORD, CLAIM), one.sealed(b"o" * 32, CLAIM), one.sealed(WORD, one.plant(CLAIM))}) == 3
