"""Nudges from kink to kink: second looks excuse lower precision in nearly every segment; marks find the coarse one."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from attack_tasks import MLP, SEGMENTS, findings, target
from lab.attacks import battery, kink_ladder
from lab.attacks.attack_target import numbers
from lab.attacks.verification_outcome import Findings, mount
from pol.verification.verdict.rerun_span import are_too_many
from pol.verification.verdict.second_look import LOOKS

WIDE = ("wide", "sgd")
STEEP = {"kink-ladder-tf32": MLP, "kink-ladder-13": WIDE}


@cache
def climbed(name: str) -> Findings:
    return mount(battery.named(name), replace(target(*STEEP[name]), looks=LOOKS))


def test_looks_excuse_tf32_in_most_segments_and_marks_find_it() -> None:
    found = climbed("kink-ladder-tf32")
    assert found.forgery.damage["segments in lower precision"] > 0.4
    assert len(found.rejected_alone) > 0.4 * SEGMENTS
    assert len(found.rejected) <= 1, "lengths alone, which is all that contracts see, accept nearly all of it"
    assert are_too_many(sum(segment.is_outside for segment in found.segments), SEGMENTS)
    assert not found.passes_tolerance
    assert not found.passes_exact


@pytest.mark.slow  # looks at every segment of a wide network
def test_thirteen_bits_need_no_explanation() -> None:
    """A known gap: what is outside of a span is allowed eight thresholds, and 13 bits need five."""
    found = climbed("kink-ladder-13")
    assert found.forgery.damage["segments in lower precision"] > 0.4
    assert found.rejected_alone
    assert found.passes_tolerance
    assert not found.passes_exact


@pytest.mark.parametrize("name", ["kink-ladder-tf32"])
def test_without_looks_the_thresholds_reject_it(name: str) -> None:
    assert len(findings(name, *MLP).rejected) > 0.4 * SEGMENTS


def test_a_nudge_brings_one_input_to_zero() -> None:
    goal = target(*MLP)
    state, step = goal.honest[3], 3 * goal.interval
    kink = kink_ladder.best(goal, state, step, 1e-2)
    assert kink is not None
    moved = kink_ladder.added(state, kink.nudge)
    names = goal.task.names.slots
    weight, bias = (numbers(moved[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
    inputs = goal.batch(step)[0].numpy() @ weight.T + bias
    assert np.abs(inputs[:, kink.unit]).min() < 1e-6
    assert sum(float((part**2).sum()) for part in kink.nudge.values()) ** 0.5 <= 1e-2
    assert kink_ladder.best(goal, state, step, 0.0) is None


def test_each_segment_of_the_ladder_begins_at_a_kink() -> None:
    goal, found = target(*MLP), climbed("kink-ladder-tf32")
    names = goal.task.names.slots
    at_kinks = 0
    for segment, (start, _) in enumerate(pairwise(found.forgery.states)):
        weight, bias = (numbers(start[names.index(f"hidden.{name}")]) for name in ("weight", "bias"))
        inputs = goal.batch(segment * goal.interval)[0].numpy() @ weight.T + bias
        at_kinks += bool(np.abs(inputs).min() < 1e-6)
    assert at_kinks > 0.4 * SEGMENTS


def test_every_attack_of_the_family_is_covered() -> None:
    assert {attack.name for attack in kink_ladder.ATTACKS} == set(STEEP)
