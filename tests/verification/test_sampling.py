"""The draw follows the specification's formula; its odds and all bounds are exact."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import sha3
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.benchmarks.rate_bounds import clopper_pearson_upper
from pol.claims.sample_size import (
    cheated_segments,
    detectable_segments,
    detection_probability,
    draws_for,
    required_draws,
)
from pol.claims.segment_draw import MAX_DRAWS, draw
from pol.errors import ProtocolError
from pol.verification.profile.order_statistics import (
    fresh_share,
    maximum_confidence,
    maximum_share,
    rank_for,
    samples_for,
)

pytestmark = pytest.mark.rules


@given(st.binary(min_size=32, max_size=32), st.integers(1, 40), st.data())
def test_the_draw_is_the_formula(seed: bytes, segments: int, data: st.DataObject) -> None:
    draws = data.draw(st.integers(1, min(segments, MAX_DRAWS)))
    expected: list[int] = []
    for j in range(100_000):
        candidate = int(sha3.keccak_256(seed + j.to_bytes(4, "big")).hexdigest(), 16) % segments
        if candidate not in expected:
            expected.append(candidate)
        if len(expected) == draws:
            break
    assert draw(seed, segments, draws) == expected


def test_more_draws_extend_fewer() -> None:
    seed = bytes(range(32))
    assert draw(seed, 12, 3) == draw(seed, 12, 12)[:3]
    assert sorted(draw(seed, 12, 12)) == list(range(12))


def test_every_segment_is_drawn_about_equally_often() -> None:
    counts = [0] * 12
    for i in range(3000):
        counts[draw(i.to_bytes(32, "big"), 12, 1)[0]] += 1
    assert all(190 < count < 310 for count in counts)  # 250 expected, standard deviation 15


@pytest.mark.parametrize(("segments", "draws"), [(12, 0), (12, 13), (0, 1), (100, 33), (5, -1)])
def test_impossible_draws(segments: int, draws: int) -> None:
    with pytest.raises(ProtocolError):
        draw(bytes(32), segments, draws)


def test_off_chain_there_may_be_more_draws() -> None:
    seed = bytes(range(32))
    assert draw(seed, 100, 80, 100)[:32] == draw(seed, 100, 32)
    assert sorted(draw(seed, 100, 100, 100)) == list(range(100))
    with pytest.raises(ProtocolError, match="1 to 100 are possible"):
        draw(seed, 100, 101, 200)
    assert draws_for(100, 5, Fraction(99, 100), 100) == 59
    assert detection_probability(100, 5, 59) >= Fraction(99, 100) > detection_probability(100, 5, 58)


def test_seed_length() -> None:
    with pytest.raises(ProtocolError, match="32 bytes"):
        draw(bytes(31), 12, 1)


def test_detection_by_enumeration() -> None:
    for segments in range(1, 7):
        for cheated in range(segments + 1):
            for draws in range(segments + 1):
                sets = list(combinations(range(segments), draws))
                hits = sum(any(s < cheated for s in chosen) for chosen in sets)
                assert detection_probability(segments, cheated, draws) == Fraction(hits, len(sets))


def test_fewest_draws() -> None:
    for cheated in range(1, 13):
        draws = draws_for(12, cheated, Fraction(9, 10))
        assert detection_probability(12, cheated, draws) >= Fraction(9, 10)
        assert detection_probability(12, cheated, draws - 1) < Fraction(9, 10)
    with pytest.raises(ProtocolError, match="can't find"):
        draws_for(1000, 1, Fraction(1, 2))


def test_required_draws_by_the_sum_of_all_smaller_ones() -> None:
    """Against the odds drawn one after the other, for every number of segments up to 30."""
    for segments in range(1, 31):
        for cheated in range(1, segments + 1):
            for probability in (Fraction(1, 3), Fraction(99, 100), Fraction(1)):
                missed, draws = Fraction(1), 0
                while 1 - missed < probability:
                    missed *= Fraction(segments - draws - cheated, segments - draws)
                    draws += 1
                assert required_draws(segments, cheated, probability) == draws


@given(st.integers(1, 10**9), st.integers(1, 200), st.integers(1, 999))
def test_required_draws_are_the_fewest(segments: int, cheated: int, thousandths: int) -> None:
    cheated, probability = min(cheated, segments), Fraction(thousandths, 1000)
    draws = required_draws(segments, cheated, probability)
    assert draws is not None
    assert detection_probability(segments, cheated, draws) >= probability
    assert detection_probability(segments, cheated, draws - 1) < probability


@given(st.integers(1, 10**6), st.integers(1, 32), st.integers(1, 1000))
def test_detectable_segments_are_the_fewest(segments: int, draws: int, thousandths: int) -> None:
    draws, probability = min(draws, segments), Fraction(thousandths, 1000)
    found = detectable_segments(segments, draws, probability)
    assert found is not None
    assert detection_probability(segments, found, draws) >= probability
    assert detection_probability(segments, found - 1, draws) < probability


def test_what_no_draw_finds() -> None:
    assert required_draws(10, 0, Fraction(1, 2)) is None
    assert required_draws(10, 3, Fraction(0)) == 0
    assert required_draws(10, 3, Fraction(11, 10)) is None
    assert detectable_segments(10, 0, Fraction(1, 2)) is None
    assert draws_for(1000, 50, Fraction(99, 100), 1000) == 86
    with pytest.raises(ProtocolError, match="can't find"):
        draws_for(1000, 50, Fraction(99, 100))
    for segments, cheated in ((10, 11), (10, -1)):
        with pytest.raises(ProtocolError, match="can't be cheated"):
            required_draws(segments, cheated, Fraction(1, 2))
    for cheated, draws in ((11, 1), (-1, 1), (1, 11), (1, -1)):
        with pytest.raises(ProtocolError, match="no such draw"):
            detection_probability(10, cheated, draws)


def test_a_share_of_the_segments_is_rounded_up() -> None:
    assert cheated_segments(1000, Fraction("0.05")) == 50
    assert cheated_segments(1001, Fraction("0.05")) == 51
    assert cheated_segments(1, Fraction(1)) == 1
    assert cheated_segments(7, Fraction(1, 10**9)) == 1
    for segments, fraction in ((0, Fraction(1, 2)), (10, Fraction(0)), (10, Fraction(3, 2))):
        with pytest.raises(ProtocolError, match="no cheating"):
            cheated_segments(segments, fraction)


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
    expected = float(at_most(rank - 1, samples, share))
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
        lambda: rank_for(3, half, Fraction(0)),
        lambda: clopper_pearson_upper(-1, 3, half),
        lambda: clopper_pearson_upper(4, 3, half),
        lambda: clopper_pearson_upper(0, 0, half),
        lambda: clopper_pearson_upper(0, 3, Fraction(2)),
    ):
        with pytest.raises(ProtocolError):
            call()
