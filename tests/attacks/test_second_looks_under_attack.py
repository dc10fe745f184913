"""Cheating where a second look is due: how much a look excuses, what it costs, and that marks and drift bound it."""

from itertools import pairwise

import numpy as np
import pytest

import chosen_rows
from attack_tasks import MLP, SEGMENTS, WIDE, findings, looked, target
from lab.attacks import looked_segments
from lab.attacks.attack_target import numbers
from lab.attacks.looked_segments import OWN_LOOKS, bearable
from lab.attacks.verification_outcome import Findings, limits
from pol.verification.verdict.rerun_span import CUT, are_too_many

pytestmark = pytest.mark.long

LOOKED = ["13-bits-where-looked", "along-reruns", "outside-reruns", "tf32-within-marks", "tf32-where-looked"]
LADDERS = ["kink-ladder-tf32", "kink-ladder-13"]


def marked(found: Findings) -> int:
    """Segments outside of the span of their reruns."""
    return sum(segment.is_outside for segment in found.segments)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("tf32", 0.75),
        ("rate+1%", 1.0),
        *(
            pytest.param(name, 1.0, marks=pytest.mark.slow)
            for name in ("fp16-checkpoints", "bf16-autocast", "one-pixel", "scale-1.001w")
        ),
    ],
)
def test_mild_attacks_are_still_rejected(name: str, least: float) -> None:
    """TF32 comes near to what honest machines do to a segment in which they take other branches."""
    found, alone = looked(name), findings(name)
    assert alone.detection == 1.0
    assert found.detection is not None
    assert found.detection >= least
    assert not found.passes_tolerance
    assert set(found.rejected) <= set(alone.rejected)
    assert found.of_limit <= alone.of_limit
    if least == 1.0:
        assert found.of_limit > 2
    assert found.cost >= 1.0 or found.rejected == alone.rejected


def test_gross_attacks_need_no_second_look() -> None:
    """What saves work is further off than any look excuses."""
    found = looked("skip-5%")
    assert found.cost < 1
    assert found.rejected == findings("skip-5%").rejected
    assert found.of_limit == findings("skip-5%").of_limit


@pytest.mark.parametrize(
    "name",
    [
        *chosen_rows.named(LOOKED[:-1], "outside-reruns", others=pytest.mark.long),
        pytest.param(LOOKED[-1], marks=pytest.mark.slow),  # looks at every segment, twice
    ],
)
def test_a_look_excuses_what_the_thresholds_reject_and_it_costs_reruns(name: str) -> None:
    found = looked(name, *WIDE)
    assert 0 < len(found.cheated) < SEGMENTS
    assert set(found.rejected_alone) <= set(found.cheated)
    assert found.rejected_alone
    assert not found.rejected
    assert not found.passes_exact
    assert found.cost >= 1 + OWN_LOOKS


@pytest.mark.parametrize("name", chosen_rows.first(["outside-reruns", "along-reruns"], 1, others=pytest.mark.long))
def test_only_a_push_along_reruns_lies_in_their_span_and_is_a_multiple_of_the_threshold(name: str) -> None:
    found = looked(name, *WIDE)
    assert marked(found) == 0
    farthest = max(segment.distances[0] for segment in found.segments)
    assert (farthest > CUT * limits(target(*WIDE))[0]) == (name == "along-reruns")


def test_low_precision_leaves_the_span_and_stops_below_the_number_that_rejects() -> None:
    found = looked("tf32-within-marks", *WIDE)
    assert 0 < marked(found) <= bearable(SEGMENTS)
    assert found.passes_tolerance
    assert marked(looked("13-bits-where-looked", *WIDE)) == 0


@pytest.mark.slow  # looks at every segment, twice
def test_low_precision_in_all_looked_segments_has_too_many_marks() -> None:
    found = looked("tf32-where-looked", *WIDE)
    assert marked(found) > bearable(SEGMENTS)
    assert not found.passes_tolerance


def test_bearable_marks_are_one_below_too_many() -> None:
    for segments in (4, 12, 40, 85):
        assert are_too_many(bearable(segments) + 1, segments)
        assert not are_too_many(bearable(segments), segments)


def test_looks_excuse_tf32_in_most_segments_of_a_ladder_of_kinks_and_marks_find_it() -> None:
    found = looked("kink-ladder-tf32", *MLP)
    assert found.forgery.damage["segments in lower precision"] > 0.4
    assert len(found.rejected_alone) > 0.4 * SEGMENTS
    assert len(found.rejected) <= 1, "lengths alone, which is all that contracts see, accept nearly all of it"
    assert are_too_many(marked(found), SEGMENTS)
    assert not found.passes_tolerance
    assert not found.passes_exact
    assert len(findings("kink-ladder-tf32", *MLP).rejected) > 0.4 * SEGMENTS, "without looks the thresholds reject it"


@pytest.mark.slow  # looks at every segment of a wide network
def test_thirteen_bits_need_no_explanation() -> None:
    """A known gap: what is outside of a span is allowed eight thresholds, and 13 bits need five."""
    found = looked("kink-ladder-13", *WIDE)
    assert found.forgery.damage["segments in lower precision"] > 0.4
    assert found.rejected_alone
    assert found.passes_tolerance
    assert not found.passes_exact


def test_a_nudge_brings_one_input_to_zero() -> None:
    goal = target(*MLP)
    state, step = goal.honest[3], 3 * goal.interval
    kink = looked_segments.best(goal, state, step, 1e-2)
    assert kink is not None
    moved = looked_segments.added(state, kink.nudge)
    names = goal.task.names.slots
    weight, bias = (numbers(moved[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
    inputs = goal.batch(step)[0].numpy() @ weight.T + bias
    assert np.abs(inputs[:, kink.unit]).min() < 1e-6
    assert sum(float((part**2).sum()) for part in kink.nudge.values()) ** 0.5 <= 1e-2
    assert looked_segments.best(goal, state, step, 0.0) is None


def test_each_segment_of_the_ladder_begins_at_a_kink() -> None:
    goal, found = target(*MLP), looked("kink-ladder-tf32", *MLP)
    names = goal.task.names.slots
    at_kinks = 0
    for segment, (start, _) in enumerate(pairwise(found.forgery.states)):
        weight, bias = (numbers(start[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
        inputs = goal.batch(segment * goal.interval)[0].numpy() @ weight.T + bias
        at_kinks += bool(np.abs(inputs).min() < 1e-6)
    assert at_kinks > 0.4 * SEGMENTS


def test_every_attack_of_both_families_is_covered() -> None:
    assert {attack.name for attack in looked_segments.ATTACKS} == set(LOOKED)
    assert {attack.name for attack in looked_segments.LADDERS} == set(LADDERS)
