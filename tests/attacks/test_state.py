"""Checkpoints that are tampered with."""

import numpy as np
import pytest

from attack_tasks import CNN, MLP, Expected, check, findings, target
from lab.attacks.attack_target import numbers
from lab.attacks.state_tampering import ATTACKS
from pol.claims.distance import component_distances
from pol.graph.step_program import Component
from pol.verification.profile.state_metrics import component_metrics

ONE = Expected(1.0, 1)
EXPECTED = {
    "optimizer-swap": ONE,
    "batchnorm-swap": Expected(1.0, 1, CNN),
    "scale-2w": ONE,
    "scale-1.001w": ONE,
    "double-update": ONE,
    # The end of one segment and the start of the next.
    "nan": Expected(1.0, 2),
    "infinity": Expected(1.0, 2),
    "huge": Expected(1.0, 2),
    "shift-components": ONE,
    "step-counter": Expected(1.0, 1, CNN),
    "negative-zeros": ONE,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_rejected_where_it_has_a_distance(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


@pytest.mark.parametrize("name", ["nan", "infinity", "huge"])
def test_a_word_without_a_distance_is_infinitely_far(name: str) -> None:
    found = findings(name)
    assert found.ratio((1.0, 1.0, 1.0)) == float("inf")


def test_a_wrong_counter_is_infinitely_far() -> None:
    assert findings("step-counter", *CNN).ratio((1.0, 1.0, 1.0)) == float("inf")


def test_a_cosine_would_not_see_a_longer_update() -> None:
    found = findings("double-update")
    segment = found.cheated[0]
    start, end = found.forgery.states[segment : segment + 2]
    replayed = target().segment_end(start, segment)
    seen = component_metrics(target().task.program, start, replayed, end, Component.PARAMETER)
    assert seen is not None
    assert abs(seen.cosine) < 1e-6
    assert seen.relative_l2 > 0.99


def test_what_is_moved_between_components_comes_back_in_the_next_step() -> None:
    """A verifier that compares weights only, one step later, would see a hundredth of what was moved."""
    found = findings("shift-components")
    segment = found.cheated[0]
    start, end = found.forgery.states[segment : segment + 2]
    honest = target().segment_end(start, segment)
    step = (segment + 1) * target().interval
    after, _ = target().executor.advance(end, step)
    expected, _ = target().executor.advance(honest, step)
    places = target().places(Component.PARAMETER)
    before = sum(float(np.abs(numbers(end[i]) - numbers(honest[i])).sum()) for i in places)
    left = sum(float(np.abs(numbers(after[i]) - numbers(expected[i])).sum()) for i in places)
    assert left < 0.2 * before


def test_negative_and_denormal_zeros_have_no_distance_and_no_effect() -> None:
    found = findings("negative-zeros", *MLP)
    segment = found.cheated[0]
    end = found.forgery.states[segment + 1]
    honest = target().segment_end(found.forgery.states[segment], segment)
    assert any((a != b).any() for a, b in zip(end, honest, strict=True))
    assert component_distances(target().task.program, honest, end) == (0, 0, 0)
    step = (segment + 1) * target().interval
    after, _ = target().executor.advance(end, step)
    expected, _ = target().executor.advance(honest, step)
    worst = max(float(np.abs(numbers(a) - numbers(b)).max()) for a, b in zip(after, expected, strict=True))
    assert worst < 1e-44
