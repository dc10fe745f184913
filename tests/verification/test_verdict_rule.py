"""The acceptance rule: finite and within the threshold, or rejected.

And limits of slots within a threshold, with the scales that make them follow each slot's own noise.
"""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.claims.acceptance_rule import EXACT, is_accepted, relative_distance
from pol.claims.distance import INFINITE, SATURATION, UNEQUAL
from pol.claims.segment_claim import SegmentClaim
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.graph.step_program import Component
from pol.training.storage.store import CorruptObjectError
from pol.verification.profile.slot_noise import SlotNoise, furthest, limits, require_limits
from pol.verification.profile.slot_scales import scales_of
from pol.verification.verdict.segment_verification import load_evidence
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide

pytestmark = pytest.mark.rules

ROOTS = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
DISTANCE = st.one_of(st.integers(0, 2**20), st.integers(0, UNEQUAL - 1))
THRESHOLD = st.one_of(st.integers(0, 2**24), st.integers(0, 2**64 - 1))


def claim(distances: tuple[int, int, int], references: tuple[int, int, int]) -> SegmentClaim:
    return SegmentClaim(4, *ROOTS, distances, references)


@given(DISTANCE, DISTANCE, THRESHOLD)
def test_the_rule_over_rationals(distance: int, reference: int, threshold: int) -> None:
    within = distance * 2**64 <= threshold * reference
    assert not reference or within == (Fraction(distance, reference) <= Fraction(threshold, 2**64))
    expected = within if reference else distance == 0
    assert is_accepted(distance, reference, threshold) == expected


@given(DISTANCE, DISTANCE, st.integers(1, 2**31 - 1), THRESHOLD)
def test_integers_have_to_be_equal_whatever_way_they_went(
    distance: int, reference: int, integers: int, threshold: int
) -> None:
    moved = reference + integers * UNEQUAL
    assert is_accepted(distance, moved, threshold) == is_accepted(distance, reference, threshold)
    assert not is_accepted(distance + integers * UNEQUAL, moved, threshold)


def test_the_rule_at_its_edge() -> None:
    assert is_accepted(1, 2**64, 1)
    assert not is_accepted(2, 2**64, 1)
    assert not is_accepted(1, 2**64 - 1, 1)
    assert is_accepted(0, 0, 0)
    assert not is_accepted(1, 0, 2**64 - 1)


def test_one_integer_is_a_rejection() -> None:
    assert is_accepted(UNEQUAL - 1, UNEQUAL - 1, 2**64 - 1) is False  # above the threshold, by one part in 2^64
    assert is_accepted(UNEQUAL // 2, UNEQUAL - 1, 2**64 - 1)
    assert not is_accepted(UNEQUAL, UNEQUAL - 1, 2**64 - 1)
    assert is_accepted(0, SATURATION - 1, 0)


@pytest.mark.parametrize("bad", [INFINITE, SATURATION, -1])
def test_what_is_not_finite_is_never_accepted(bad: int) -> None:
    for distance, reference in ((bad, 1), (1, bad), (bad, bad), (0, bad)):
        assert not is_accepted(distance, reference, 2**64 - 1)


@pytest.mark.parametrize("threshold", [-1, 2**64])
def test_a_threshold_is_a_uint64(threshold: int) -> None:
    with pytest.raises(ProtocolError, match="64-bit"):
        is_accepted(0, 0, threshold)


def test_every_component_must_pass() -> None:
    limits = (2**60, 2**60, 2**60)  # a sixteenth of the squared distance travelled
    good = decide(claim((1, 0, 6), (16, 0, 100)), limits)
    assert (good.outcome, good.reasons) == (Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,))
    for bad in range(3):
        distances, references = [1, 0, 6], [16, 0, 100]
        distances[bad] = 7
        verdict = decide(claim((distances[0], distances[1], distances[2]), (16, 0, 100)), limits)
        assert (verdict.outcome, verdict.reasons) == (Outcome.REJECTED, (Reason.DISTANCE_ABOVE_THRESHOLD,))
        assert ("parameter", "buffer", "optimizer")[bad] in verdict.detail
        assert references == [16, 0, 100]


def test_reasons_are_told_apart() -> None:
    limits = (2**60,) * 3
    assert decide(claim((INFINITE, 0, 0), (1, 0, 0)), limits).reasons == (Reason.DISTANCE_INFINITE,)
    assert decide(claim((0, 0, 0), (INFINITE, 0, 0)), limits).reasons == (Reason.REFERENCE_INFINITE,)
    assert decide(claim((UNEQUAL, 0, 0), (UNEQUAL, 0, 0)), limits).reasons == (Reason.INTEGERS_DIFFER,)
    both = decide(claim((INFINITE, 0, 5), (1, 0, 5)), limits)
    assert both.reasons == (Reason.DISTANCE_INFINITE, Reason.DISTANCE_ABOVE_THRESHOLD)
    assert both.segment == 4


@pytest.mark.parametrize("thresholds", [EXACT, (2**64 - 1,) * 3])
def test_a_zero_root_is_no_state(thresholds: tuple[int, int, int]) -> None:
    for roots in ((bytes(32), *ROOTS[1:]), (ROOTS[0], bytes(32), bytes(32))):
        verdict = decide(SegmentClaim(4, *roots, (0, 0, 0), (1, 1, 1)), thresholds)
        assert (verdict.outcome, verdict.reasons) == (Outcome.REJECTED, (Reason.ZERO_ROOT,))


@given(st.tuples(*[DISTANCE] * 3), st.tuples(*[DISTANCE] * 3))
def test_in_exact_mode_other_roots_reject_whatever_the_sums_are(
    distances: tuple[int, int, int], references: tuple[int, int, int]
) -> None:
    start, end, other = ROOTS
    unequal = decide(SegmentClaim(4, start, end, other, distances, references), EXACT)
    assert (unequal.outcome, unequal.reasons) == (Outcome.REJECTED, (Reason.ROOTS_DIFFER,))


SUM = st.one_of(
    st.just(0), st.integers(0, 2**256 - 1), st.sampled_from([1, UNEQUAL, SATURATION - 1, SATURATION, INFINITE])
)


@given(st.tuples(*[SUM] * 3), st.tuples(*[SUM] * 3))
def test_in_exact_mode_equal_roots_have_no_distance_and_a_finite_way(
    distances: tuple[int, int, int], references: tuple[int, int, int]
) -> None:
    start, end, _ = ROOTS
    verdict = decide(SegmentClaim(4, start, end, end, distances, references), EXACT)
    accepted = distances == (0, 0, 0) and max(references) < SATURATION
    assert (verdict.outcome is Outcome.ACCEPTED) == accepted
    assert (verdict.reasons == (Reason.EQUAL_ROOTS,)) == accepted


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ProtocolError("truncated"), Outcome.REJECTED, Reason.BAD_EVIDENCE),
        (OperationalError("disk"), Outcome.INCONCLUSIVE, Reason.NOT_AVAILABLE),
        (MemoryError("memory"), Outcome.INCONCLUSIVE, Reason.NOT_AVAILABLE),
        (CorruptObjectError("mirror"), Outcome.INCONCLUSIVE, Reason.CORRUPT_OBJECT),
    ],
)
def test_bad_evidence_rejects_and_a_failed_look_does_not(error: Exception, outcome: Outcome, reason: Reason) -> None:
    def fail() -> tuple[list[object], list[object]]:
        raise error

    verdict = load_evidence(3, fail)  # type: ignore[arg-type]  # it never returns
    assert isinstance(verdict, Verdict)
    assert (verdict.outcome, verdict.reasons, verdict.claim) == (outcome, (reason,), None)
    assert str(error) in verdict.detail


def test_a_bug_of_ours_is_not_turned_into_a_verdict() -> None:
    def fail() -> tuple[list[object], list[object]]:
        raise TypeError("bug")

    with pytest.raises(TypeError):
        load_evidence(3, fail)  # type: ignore[arg-type]  # it never returns


def test_enums_start_at_one() -> None:
    assert [outcome.value for outcome in Outcome] == [1, 2, 3]


def test_relative_distance_for_people() -> None:
    assert relative_distance(4, 16) == 0.5
    assert relative_distance(0, 0) == 0.0
    assert relative_distance(1, 0) == float("inf")
    assert relative_distance(INFINITE, 1) == float("inf")
    assert relative_distance(4, UNEQUAL + 16) == 0.5
    assert relative_distance(0, UNEQUAL) == 0.0
    assert relative_distance(1, UNEQUAL) == float("inf")
    assert relative_distance(UNEQUAL, 16) == float("inf")


WEIGHT = SlotNoise(
    "weight", Component.PARAMETER, 0, noise=2.0**-20, way=1.0, trained=1.0, random=False, length=4.0, greatest=1.0
)
THRESHOLDS = (1 << 44, 1 << 24, 1 << 24)  # 2^-10 of the way of parameters, 2^-20 of that of the others
LONG = (1 << 2 * (40 + 12), 0, 0)  # a way of 2^12


def test_the_limit_of_a_slot_is_that_of_its_component_over_its_scale() -> None:
    average = replace(WEIGHT, name="average", component=Component.OPTIMIZER, scale=12)
    references = [(1 << 2 * 43, 0, 1 << 2 * 41), (1 << 2 * 42, 0, 1 << 2 * 40)]
    assert limits([WEIGHT, replace(WEIGHT, scale=5), average], THRESHOLDS, references) == [2**-7, 2**-12, 2**-31]


def test_a_ballast_takes_the_limits_from_all_others() -> None:
    """One parameter that moves far makes the way of all parameters its own."""
    ballast = replace(WEIGHT, name="ballast", way=2.0**12, length=2.0**12, greatest=2.0**9)
    with pytest.raises(UnsupportedError, match=r"say nothing about weight \(4 of its way\)"):
        require_limits([WEIGHT, ballast], THRESHOLDS, [LONG])
    require_limits([replace(WEIGHT, scale=3), ballast], THRESHOLDS, [LONG])
    weight, heavy = scales_of([WEIGHT, ballast])
    assert weight - heavy == 8  # the ballast rounds by 2^-12, the weight is off by 2^-20
    require_limits([replace(WEIGHT, way=0.0, trained=0.0), ballast], THRESHOLDS, [LONG])  # it stands still


def test_noise_alone_is_free_and_noise_beside_training_is_not() -> None:
    noise = replace(WEIGHT, name="bias", trained=0.0, random=True)
    require_limits([noise], THRESHOLDS, [LONG])
    mixed = replace(noise, trained=0.5)
    with pytest.raises(UnsupportedError, match=r"bias \(5.7 of its way, of which a part moves by rounding alone\)"):
        require_limits([mixed], THRESHOLDS, [LONG])
    short = (1 << 2 * 45, 0, 0)  # 2^5: a limit of 2^-5, enough for a tensor that is trained as a whole
    require_limits([WEIGHT], THRESHOLDS, [short])
    with pytest.raises(UnsupportedError, match="a part moves by rounding alone"):
        require_limits([mixed], THRESHOLDS, [short])


def test_no_scale_takes_the_distance_from_a_number_that_grows_a_thousandfold() -> None:
    noisy = replace(WEIGHT, name="noisy", noise=1.0)
    clean = replace(WEIGHT, noise=0.0, greatest=3.0)
    assert scales_of([noisy, clean]) == [0, 23 - 10 - 2]
    assert scales_of([noisy, replace(clean, greatest=2.0**-12)]) == [0, 22]  # by its noise: 2^-24 of its length


def test_zeros_integers_and_what_has_no_distance_keep_their_scale() -> None:
    zeros = replace(WEIGHT, noise=0.0, length=0.0, greatest=0.0, scale=12)
    endless = replace(WEIGHT, noise=math.inf, scale=3)
    assert scales_of([replace(WEIGHT, noise=1.0), zeros, endless]) == [0, 12, 3]


def test_a_constant_decides_for_no_other() -> None:
    """A mask of -1e9 never moves, and has no distance as soon as it did."""
    mask = replace(WEIGHT, name="mask", noise=0.0, way=0.0, trained=0.0, length=4e9, greatest=1e9)
    noisy = replace(WEIGHT, noise=2.0**-10)
    assert scales_of([noisy, replace(WEIGHT, noise=2.0**-20), mask])[:2] == [0, 10]


def test_averages_of_squares_may_grow_by_the_square_of_a_thousandfold() -> None:
    squares = replace(WEIGHT, scale=12, noise=2.0**-40, length=2.0**-16, greatest=2.0**-17)
    noisy = replace(WEIGHT, noise=2.0**-10)
    assert scales_of([noisy, squares]) == [0, 23 - 20 + 17]
    assert scales_of([noisy, replace(squares, greatest=2.0**-5)]) == [0, 12]


def test_shares_of_a_distance() -> None:
    slots = [replace(WEIGHT, name="a", noise=1.0), replace(WEIGHT, name="b", noise=0.25, scale=3)]
    assert furthest(slots, Component.PARAMETER) == [("b", 0.8), ("a", 0.2)]
    assert furthest([*slots, replace(WEIGHT, name="c", noise=math.inf)], Component.PARAMETER)[0] == ("c", 1.0)
    assert furthest(slots, Component.BUFFER) == []
