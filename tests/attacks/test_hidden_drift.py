"""Drift that hides from the rule against it: what passes, and that its gain is what the thresholds allow."""

import pytest

from attack_tasks import CNN, MLP, SEGMENTS, Expected, check, findings, target
from lab.attacks import battery, target_tasks
from lab.attacks.hidden_drift import ALONG, ATTACKS, FEW
from lab.attacks.verification_outcome import Findings, limits, mount
from pol.graph.step_program import Component
from pol.verification.verdict.drift import CHANCE, drifts

EVERYWHERE = Expected(1.0, SEGMENTS)
EXPECTED = {
    "drift-in-noise": EVERYWHERE,
    "drift-in-pairs": EVERYWHERE,
    "drift-rotating": EVERYWHERE,
    "drift-by-slots": EVERYWHERE,
    "drift-few": Expected(1.0, FEW),
    "drift-across": EVERYWHERE,
    "drift-counterweights": EVERYWHERE,
    "drift-reversed": EVERYWHERE,
    "drift-undone": EVERYWHERE,
    "drift-buffers": Expected(1.0, SEGMENTS, CNN),
    "rate-creep": EVERYWHERE,
}


def score(found: Findings, component: Component = Component.PARAMETER) -> float:
    """Of the drift of a component."""
    return next(drift.score for drift in found.drifts if drift.component is component)


@pytest.mark.parametrize("name", EXPECTED)
def test_it_passes_the_thresholds_at_full_cost_and_fails_in_exact_mode(name: str) -> None:
    found = check(ATTACKS, name, EXPECTED)
    damage = found.forgery.damage
    # The dynamics of the training carry a push further, but not by much.
    assert damage["injected, of the way"] <= max(limits(target(*EXPECTED[name].on)))
    assert damage["end moved, of the way"] <= 10 * max(limits(target(*EXPECTED[name].on)))
    assert damage["accuracy lost"] < 0.01
    assert damage["back door"] - damage["back door of the honest model"] < 0.01


@pytest.mark.parametrize("name", ["drift-in-noise", "drift-in-pairs", "drift-rotating", "drift-by-slots"])
def test_mixed_directions_score_far_below_one_direction(name: str) -> None:
    assert score(findings("drift", *MLP)) > 0.6 * SEGMENTS
    assert score(findings(name, *MLP)) < 0.6 * SEGMENTS


def test_noise_leaves_the_mean_cosine_that_was_chosen() -> None:
    found = findings("drift-in-noise", *MLP)
    assert score(found) == pytest.approx(1 + ALONG * (SEGMENTS - 1), rel=0.4)


def test_few_pushes_in_one_direction_never_exceed_the_limit() -> None:
    found = findings("drift-few", *MLP)
    assert 0.6 * FEW < score(found) <= CHANCE
    assert found.passes_tolerance


def test_pushes_that_are_taken_back_cancel_in_the_score() -> None:
    assert score(findings("drift-reversed", *MLP)) < 0.3 * score(findings("drift", *MLP))
    assert score(findings("drift-counterweights", *MLP)) < 0.6 * score(findings("drift", *MLP))


def test_components_are_judged_apart() -> None:
    """Twice as many pushes as a component bears."""
    found = findings("drift-across", *MLP)
    weights = [found.segments[i].distances[0] > 0 for i in range(SEGMENTS)]
    moments = [found.segments[i].distances[2] > 0 for i in range(SEGMENTS)]
    assert 0 < sum(weights) < SEGMENTS
    assert not any(one and other for one, other in zip(weights, moments, strict=True))


def test_momentum_that_takes_a_push_back_drifts_itself() -> None:
    found = findings("drift-undone", *MLP)
    assert score(found) > 0.6 * SEGMENTS
    assert score(found, Component.OPTIMIZER) > 0.6 * SEGMENTS


@pytest.mark.slow  # 40 segments
@pytest.mark.parametrize(("name", "passes"), [("drift", False), ("drift-in-noise", True), ("drift-undone", False)])
def test_forty_segments_show_what_twelve_do_not(name: str, passes: bool) -> None:
    found = mount(battery.named(name), target_tasks.target("mlp", "sgd", 400, 10))
    assert found.passes_tolerance == passes
    assert any(drift.is_found for drift in drifts([s.direction for s in found.segments if s.direction])) != passes
