"""The draw follows the specification's formula, and its odds are exact."""

from fractions import Fraction
from itertools import combinations

import pytest
import sha3
from hypothesis import given
from hypothesis import strategies as st

from pol.claims.sample_size import (
    cheated_segments,
    detectable_segments,
    detection_probability,
    draws_for,
    required_draws,
)
from pol.claims.segment_draw import MAX_DRAWS, draw
from pol.errors import ProtocolError


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
    draws = draws_for(100, 5, Fraction(99, 100), 100)
    assert draws == 59
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


def test_a_share_of_the_segments_is_rounded_up() -> None:
    assert cheated_segments(1000, Fraction("0.05")) == 50
    assert cheated_segments(1001, Fraction("0.05")) == 51
    assert cheated_segments(7, Fraction(1, 10**9)) == 1
    for segments, fraction in ((0, Fraction(1, 2)), (10, Fraction(0)), (10, Fraction(3, 2))):
        with pytest.raises(ProtocolError, match="no cheating"):
            cheated_segments(segments, fraction)
