"""Cheating where a second look is due: how much each look excuses, and that marks and drift bound it."""

from dataclasses import replace
from functools import cache

import pytest

from attack_tasks import SEGMENTS, target
from lab.attacks import battery
from lab.attacks.looked_segments import ATTACKS, OWN_LOOKS, bearable
from lab.attacks.verification_outcome import Findings, limits, mount
from pol.verification.verdict.rerun_span import CUT, are_too_many
from pol.verification.verdict.second_look import LOOKS

WIDE = ("wide", "sgd")


@cache
def looked(name: str) -> Findings:
    return mount(battery.named(name), replace(target(*WIDE), looks=LOOKS))


def marked(found: Findings) -> int:
    """Segments outside of the span of their reruns."""
    return sum(segment.is_outside for segment in found.segments)


@pytest.mark.parametrize(
    "name",
    [
        "13-bits-where-looked",
        "along-reruns",
        "outside-reruns",
        "tf32-within-marks",
        pytest.param("tf32-where-looked", marks=pytest.mark.slow),  # looks at every segment, twice
    ],
)
def test_a_look_excuses_what_the_thresholds_reject_and_it_costs_reruns(name: str) -> None:
    found = looked(name)
    assert 0 < len(found.cheated) < SEGMENTS
    assert set(found.rejected_alone) <= set(found.cheated)
    assert found.rejected_alone
    assert not found.rejected
    assert not found.passes_exact
    assert found.cost >= 1 + OWN_LOOKS


def test_a_push_along_reruns_lies_in_their_span_and_is_a_multiple_of_the_threshold() -> None:
    found = looked("along-reruns")
    assert marked(found) == 0
    assert max(segment.distances[0] for segment in found.segments) > CUT * limits(target(*WIDE))[0]


def test_a_push_outside_of_the_span_is_at_most_the_cut() -> None:
    found = looked("outside-reruns")
    assert marked(found) == 0
    assert max(segment.distances[0] for segment in found.segments) <= CUT * limits(target(*WIDE))[0]


def test_low_precision_leaves_the_span_and_stops_below_the_number_that_rejects() -> None:
    found = looked("tf32-within-marks")
    assert 0 < marked(found) <= bearable(SEGMENTS)
    assert found.passes_tolerance
    assert marked(looked("13-bits-where-looked")) == 0


@pytest.mark.slow  # looks at every segment, twice
def test_low_precision_in_all_looked_segments_has_too_many_marks() -> None:
    found = looked("tf32-where-looked")
    assert marked(found) > bearable(SEGMENTS)
    assert not found.passes_tolerance


def test_bearable_marks_are_one_below_too_many() -> None:
    for segments in (4, 12, 40, 85):
        assert are_too_many(bearable(segments) + 1, segments)
        assert not are_too_many(bearable(segments), segments)


def test_every_attack_of_the_family_is_covered() -> None:
    names = "13-bits-where-looked along-reruns outside-reruns tf32-within-marks tf32-where-looked"
    assert {attack.name for attack in ATTACKS} == set(names.split())
