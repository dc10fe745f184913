"""Every attack of the battery: what it costs, and that each segment that it cheats in is rejected, and no other."""

import pytest

from attack_tasks import ADAM, CNN, INTERVAL, SEGMENTS, STEPS, TUNED, Expected, check, findings, target
from lab.attacks import battery, kink_ladder, looked_segments
from lab.attacks.hidden_drift import FEW
from lab.attacks.synthetic_data import ITERATIONS
from lab.attacks.verification_outcome import limits
from pol.verification.verdict.verdict import Reason

EVERYWHERE, ONE, TWO = Expected(1.0, SEGMENTS), Expected(1.0, 1), Expected(1.0, 2)
# A gradient of a gradient: its products are those of three steps, less the one with the input of the first layer.
EXPLAINED = Expected(SEGMENTS * ITERATIONS * 3.0 / STEPS, SEGMENTS)

SYNTHETIC_DATA = {
    "zhang-1": EXPLAINED,
    "zhang-2": EXPLAINED,
    "zhang-3": Expected(0.0, None),
    "zhang-3-joined": Expected(0.0, SEGMENTS),
    "own-task": Expected(1.0, None),
}
TINY_UPDATES = {
    # One step of each segment but the first, which jumps.
    "infinitesimal": Expected((SEGMENTS - 1) / SEGMENTS / INTERVAL, SEGMENTS),
    "blindfold-top-q": Expected(1 / SEGMENTS, SEGMENTS - 1),
    "dodge-top-q": Expected((SEGMENTS - 1 + 1 / INTERVAL) / SEGMENTS, 1),
}
SHORTCUTS = {
    "interpolation": Expected(0.0, SEGMENTS),
    "skip-5%": Expected(57 / 60, 3),
    "skip-10%": Expected(54 / 60, 6),
    "skip-50%": Expected(30 / 60, SEGMENTS),
    "repeat-checkpoints": Expected(11 / 12, 1),
    "early-stop": Expected(0.5, SEGMENTS // 2),
    "fabrication": Expected(0.0, SEGMENTS),
    "sidestep": Expected(11 / 12, 1),
    "extrapolate-10%": Expected(11 / 12, 1),
    "extrapolate-50%": Expected(0.5, SEGMENTS // 2),
    # Ten of 4,810 numbers still move.
    "collapse": Expected(11 / 12 * 10 / 4810, 1),
}
FALSE_DATA = {
    "other-order": EVERYWHERE,
    "declared-order": Expected(1.0, None),
    "swapped-batches": ONE,
    "repeated-batches": EVERYWHERE,
    "half-batches": Expected(0.5, SEGMENTS),
    "stale-updates": Expected(0.5, SEGMENTS),
    "truncated-hash": EVERYWHERE,
}
SETTINGS = dict.fromkeys(("rate+1%", "rate+10%", "schedule", "lazy-momentum"), EVERYWHERE)
STATES = {
    "optimizer-swap": ONE,
    "batchnorm-swap": Expected(1.0, 1, CNN),
    "scale-2w": ONE,
    "scale-1.001w": ONE,
    "double-update": ONE,
    # The end of one segment and the start of the next.
    "nan": TWO,
    "infinity": TWO,
    "huge": TWO,
    "shift-components": ONE,
    "step-counter": Expected(1.0, 1, CNN),
    "negative-zeros": ONE,
}
PRECISION = dict.fromkeys(("bf16-autocast", "bf16-weights", "tf32", "fp16-checkpoints", "20-bit-products"), EVERYWHERE)
THEFT = {
    "stolen-run": Expected(0.0, SEGMENTS),
    "stolen-start": Expected(0.0, None),
    "splice": Expected(11 / 12, 1),
    "drip": Expected(11 / 12, 1),
}
PROTOCOL = {
    "withheld": Expected(11 / 12, 2),
    "two-faced": Expected(11 / 12, 2),
    "left-out": Expected(11 / 12, None),
    "longer-interval": Expected(11 / 12, None),
}
WITHIN_TOLERANCE = {
    "drift": EVERYWHERE,
    "below-grid": EVERYWHERE,
    "back-door": Expected(1.0, SEGMENTS - 1, ADAM),
    "back-door-plausible": Expected(1.0, SEGMENTS - 1, ADAM),
}
DRIFTS = "in-noise in-pairs rotating by-slots few across counterweights reversed undone buffers"
HIDDEN_DRIFT = {
    **{f"drift-{name}": EVERYWHERE for name in DRIFTS.split()},
    "drift-few": Expected(1.0, FEW),
    "drift-buffers": Expected(1.0, SEGMENTS, CNN),
    "rate-creep": EVERYWHERE,
}
AMPLIFIED_AVERAGES = {
    "back-door-in-noise": Expected(1.0, SEGMENTS - 1, ADAM),
    "back-door-few": Expected(1.0, FEW, ADAM),
    "dead-unit": Expected(1.0, SEGMENTS - 1, TUNED),
    "awakening": Expected(1.0, SEGMENTS - 1, TUNED),
    "averages-in-noise": Expected(1.0, SEGMENTS, ADAM),
    "silent-weights": EVERYWHERE,
}
PLAIN = {
    **SYNTHETIC_DATA, **TINY_UPDATES, **SHORTCUTS, **FALSE_DATA, **SETTINGS, **STATES, **PRECISION, **THEFT, **PROTOCOL,
    **WITHIN_TOLERANCE,
}  # fmt: skip
ELSEWHERE = {"lazy-backward", "poisoned-labels", "one-pixel", "retrospective", "grinding"}
"""These have tests of their own: test_forged_work.py, test_forged_states.py."""
UNSEEN = {"skip-1%"}
"""Of 60 steps none is the hundredth: see test_forged_work.py."""


@pytest.mark.parametrize("name", PLAIN)
def test_it_is_refused_or_rejected_unless_it_hides_at_full_cost(name: str) -> None:
    check(name, PLAIN[name])


@pytest.mark.parametrize("name", HIDDEN_DRIFT)
def test_drift_that_hides_passes_the_thresholds_at_full_cost_and_fails_in_exact_mode(name: str) -> None:
    want = HIDDEN_DRIFT[name]
    damage = check(name, want).forgery.damage
    # The dynamics of the training carry a push further, but not by much.
    assert damage["injected, of the way"] <= max(limits(target(*want.on)))
    assert damage["end moved, of the way"] <= 10 * max(limits(target(*want.on)))
    assert damage["accuracy lost"] < 0.01
    assert damage["back door"] - damage["back door of the honest model"] < 0.01


@pytest.mark.parametrize("name", AMPLIFIED_AVERAGES)
def test_amplified_averages_show_where_the_replay_goes_on_from_its_own_state(name: str) -> None:
    """Each segment is accepted by itself; what a checkpoint hides becomes whole weights in the next one."""
    found = check(name, AMPLIFIED_AVERAGES[name])
    assert found.found_by == (set() if name == "silent-weights" else {Reason.PAIR})


def test_every_attack_of_the_battery_is_expected() -> None:
    looked = {attack.name for attack in (*looked_segments.ATTACKS, *kink_ladder.ATTACKS)}
    names = [*PLAIN, *HIDDEN_DRIFT, *AMPLIFIED_AVERAGES, *ELSEWHERE, *UNSEEN, *looked]
    assert sorted(names) == sorted(attack.name for attack in battery.ATTACKS)


@pytest.mark.slow  # another target; test_battery.py runs all attacks against it
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, CNN) for name in ("skip-5%", "early-stop", "extrapolate-50%", "fabrication", "bf16-autocast", "tf32")),
        *((name, ADAM) for name in SETTINGS),
    ],
)
def test_it_is_rejected_with_other_models_and_optimizers(name: str, kind: tuple[str, str]) -> None:
    found = findings(name, *kind)
    assert found.cheated
    assert found.rejected == found.cheated
    if name in SETTINGS or name in PRECISION:
        assert found.rejected == list(range(SEGMENTS))
