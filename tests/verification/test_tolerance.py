"""Each bound against its definition in exact arithmetic, and against simulated samples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.verification.rate_bounds import clopper_pearson_upper
from pol.errors import ProtocolError
from pol.verification.profile.order_statistics import (
    fresh_share,
    maximum_confidence,
    maximum_share,
    rank_confidence,
    rank_for,
    samples_for,
)

SHARES = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)


def at_most(count: int, samples: int, rate: Fraction) -> Fraction:
    """P(Bin(samples, rate) <= count), term by term."""
    return sum(
        (math.comb(samples, i) * rate**i * (1 - rate) ** (samples - i) for i in range(count + 1)), start=Fraction(0)
    )


@settings(max_examples=40)
@given(st.integers(1, 60), st.data(), SHARES)
def test_the_upper_bound_is_the_least_rate_that_the_cases_speak_against(
    samples: int, data: st.DataObject, confidence: Fraction
) -> None:
    count = data.draw(st.integers(0, samples - 1))
    bound = clopper_pearson_upper(count, samples, confidence)
    assert at_most(count, samples, Fraction(bound)) <= 1 - confidence
    assert at_most(count, samples, Fraction(bound) - Fraction(1, 10**14)) > 1 - confidence


@pytest.mark.parametrize(
    ("count", "samples", "confidence", "bound"),
    # Closed forms: none of n, and all but one; the others as R's binom.test gives them.
    [
        (0, 2994, "0.95", 1 - 0.05 ** (1 / 2994)),
        (9, 10, "0.95", 0.95 ** (1 / 10)),
        (1, 10, "0.95", 0.3941633),
        (2, 20, "0.95", 0.2826185),
        (10, 10, "0.95", 1.0),
    ],
)
def test_known_upper_bounds(count: int, samples: int, confidence: str, bound: float) -> None:
    assert clopper_pearson_upper(count, samples, Fraction(confidence)) == pytest.approx(bound, rel=1e-6)


def test_the_upper_bound_of_many_trials() -> None:
    """The rule of three, and a rate in the middle, where floating-point powers underflow."""
    assert clopper_pearson_upper(0, 10**9, Fraction(95, 100)) == pytest.approx(2.9957e-9, rel=1e-4)
    assert clopper_pearson_upper(2000, 4000, Fraction(95, 100)) == pytest.approx(
        0.5 + 1.645 * 0.5 / 4000**0.5, rel=1e-3
    )


def test_the_upper_bound_covers_the_rate_as_often_as_it_says() -> None:
    source = np.random.default_rng(1)
    rate, trials, confidence = 0.03, 80, Fraction(9, 10)
    bounds = [clopper_pearson_upper(count, trials, confidence) for count in range(trials + 1)]
    covered = np.mean([bounds[count] >= rate for count in source.binomial(trials, rate, 4000)])
    assert covered >= 0.9


@settings(max_examples=40)
@given(SHARES, SHARES)
def test_the_sample_size_is_the_least_that_suffices(share: Fraction, confidence: Fraction) -> None:
    samples = samples_for(share, confidence)
    assert maximum_confidence(samples, share) >= confidence
    assert samples == 1 or maximum_confidence(samples - 1, share) < confidence
    assert maximum_share(samples, confidence) >= float(share) - 1e-12


def test_known_sample_sizes() -> None:
    """Where the confidence is met exactly; by Wilks, 59 draws for 95 % with 95 % confidence, 299 for 99 %."""
    assert samples_for(Fraction(1, 2), Fraction(3, 4)) == 2
    assert samples_for(Fraction(1, 10), Fraction(9, 10)) == 1
    confidence = Fraction(95, 100)
    assert [samples_for(Fraction(p), confidence) for p in ("0.95", "0.99", "0.999")] == [59, 299, 2995]


@given(st.integers(1, 60), st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(95, 100)]))
def test_the_share_of_the_greatest_inverts_its_confidence(samples: int, confidence: Fraction) -> None:
    share = maximum_share(samples, confidence)
    assert maximum_confidence(samples, Fraction(share)) >= confidence
    assert maximum_confidence(samples, Fraction(share) + Fraction(1, 10**13)) < confidence


@given(st.integers(1, 40), st.data(), SHARES)
def test_ranks_against_the_binomial_distribution(samples: int, data: st.DataObject, share: Fraction) -> None:
    rank = data.draw(st.integers(1, samples))
    exact = at_most(rank - 1, samples, share)
    found = rank_confidence(samples, rank, share)
    assert Fraction(found) <= exact
    assert found == pytest.approx(float(exact), abs=1e-14)
    if rank == samples:
        assert found == pytest.approx(float(maximum_confidence(samples, share)), abs=1e-14)


@settings(max_examples=30)
@given(st.integers(1, 40), SHARES, SHARES)
def test_the_least_rank(samples: int, share: Fraction, confidence: Fraction) -> None:
    exact = [rank for rank in range(1, samples + 1) if at_most(rank - 1, samples, share) >= confidence]
    assert rank_for(samples, share, confidence) == (exact[0] if exact else None)


@pytest.mark.parametrize("steps", [0, 4])
def test_bounds_cover_simulated_distributions(steps: int) -> None:
    """A smooth distribution with a long tail, and one with few values, where the bounds are only safer."""
    source = np.random.default_rng(2)
    runs, samples, share, confidence = 4000, 40, Fraction(8, 10), Fraction(9, 10)
    rank = rank_for(samples, share, confidence)
    assert rank is not None
    draws, fresh = source.random((runs, samples)), source.random(runs)
    if steps:
        draws, fresh = np.ceil(draws * steps) / steps, np.ceil(fresh * steps) / steps
    # The share that lies at or below a bound b is b itself: all distributions are monotone images of this one.
    bounds = np.sort(draws, axis=1)
    found = np.mean(bounds[:, rank - 1] >= float(share))
    expected = rank_confidence(samples, rank, share)
    assert found >= expected - 0.01
    if not steps:
        assert found == pytest.approx(expected, abs=0.02)
    assert np.mean(fresh <= draws[:, :9].max(axis=1)) >= float(fresh_share(9)) - 0.01


def test_what_promises_nothing() -> None:
    half = Fraction(1, 2)
    for call in (
        lambda: fresh_share(0),
        lambda: maximum_confidence(0, half),
        lambda: maximum_confidence(1, Fraction(1)),
        lambda: samples_for(Fraction(1), half),
        lambda: samples_for(half, Fraction(1)),
        lambda: rank_confidence(3, 0, half),
        lambda: rank_confidence(3, 4, half),
        lambda: rank_for(3, half, Fraction(0)),
        lambda: clopper_pearson_upper(-1, 3, half),
        lambda: clopper_pearson_upper(4, 3, half),
        lambda: clopper_pearson_upper(0, 0, half),
        lambda: clopper_pearson_upper(0, 3, Fraction(2)),
    ):
        with pytest.raises(ProtocolError):
            call()
