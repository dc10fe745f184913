"""Errors on purpose: as often as was meant, where the draw says, and nothing that tells."""

from dataclasses import replace
from fractions import Fraction

import pytest

from pol.claims.segment_claim import SegmentClaim
from pol.errors import ProtocolError
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE, ONE, Assignment, check_rate, rate_of

pytestmark = pytest.mark.rules

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
    hits = {assignment(number).index(32) for number in range(400)}
    assert hits == set(range(32))
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
