"""The battery as a whole, its document and what it claims.

Of every attack: what it costs, and that each segment that it cheats in is rejected, and no other.
"""

import json
from pathlib import Path

import pytest
import torch

from attack_tasks import ADAM, CNN, INTERVAL, MLP, SEGMENTS, STEPS, TUNED, Expected, check, findings, target
from lab.attacks import battery, honest_reruns, looked_segments, target_tasks
from lab.attacks.battery import ATTACKS
from lab.attacks.hidden_drift import FEW
from lab.attacks.synthetic_data import ITERATIONS
from lab.attacks.verification_outcome import limits
from lab.benchmarks.attack_battery import KINKED, SIZES, document, figures, row
from pol.verification.verdict.verdict import Reason

DOCS = Path(__file__).parents[2] / "docs"


def test_the_document_is_that_of_the_measurements() -> None:
    measured = json.loads((DOCS / "attacks.json").read_text())
    message = "run: PYTHONPATH=tests python -m lab.benchmarks.attack_battery"
    page = (DOCS / "attacks.md").read_text()
    assert page == document(measured, page), message
    covered = {name for part in measured.values() for name in part["attacks"]}
    assert {attack.name for attack in ATTACKS} <= covered, message
    lengths = sum(len(intervals) for _, intervals in SIZES.values())
    assert len(measured) == lengths * len(target_tasks.OPTIMIZERS) + len(KINKED)


def test_the_published_figures_hold_what_is_claimed() -> None:
    found = figures(json.loads((DOCS / "attacks.json").read_text()))
    assert found["attacks"].value >= 76
    assert found["undetected_in_exact_mode"].value == 0
    assert found["survive_tolerance_least_cost"].value >= 1
    assert found["detection_when_drawn"].value == 1
    assert found["detection_5_percent"].value >= 0.99
    assert found["separation_min"].value >= 30


def test_names_are_unique_and_every_attack_has_a_source() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert all(attack.source and attack.what for attack in ATTACKS)


def test_honest_runs_of_torch_stay_below_the_thresholds() -> None:
    for kind in (MLP, CNN):
        for distances in honest_reruns.spread(target(*kind), ("eager", "without oneDNN")).values():
            assert all(2 * d <= limit for d, limit in zip(distances, limits(target(*kind)), strict=True))


def test_a_row_says_how_far_an_attack_is_from_honest_runs() -> None:
    found = row(target(), findings("rate+1%"), (1e-6, 0.0, 1e-6))
    assert found["rejected"] == found["cheated"] == found["segments"]
    assert found["caught"] == found["caught_screened"] == 1.0
    assert found["draws"] == 1
    assert found["of_honest"] > 30
    refused = row(target(), findings("stolen-start"), (1e-6, 0.0, 1e-6))
    assert (refused["refused"], refused["draws"], refused["caught"]) == (True, 0, 1.0)


@pytest.mark.slow  # compiles two models
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's compiler uses what torch deprecates
def test_compiled_models_and_other_threads_are_honest() -> None:
    for kind in (MLP, CNN):
        for distances in honest_reruns.spread(target(*kind), tuple(honest_reruns.WAYS)).values():
            assert all(2 * d <= limit for d, limit in zip(distances, limits(target(*kind)), strict=True))
    assert torch.get_num_threads() == 1


@pytest.mark.slow  # every attack against three tasks
@pytest.mark.parametrize("kind", [MLP, ADAM, CNN])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_passes_exact_mode_below_full_cost(attack: object, kind: tuple[str, str]) -> None:
    chosen = next(a for a in ATTACKS if a is attack)
    if not chosen.applies(target(*kind)):
        # A swap of buffers needs buffers. That no attack is left out everywhere is a test of its own.
        pytest.skip("it needs something that this task lacks")
    found = findings(chosen.name, *kind)
    assert found.cost >= 1 or not found.passes_exact
    if not chosen.hides and found.refused is None:
        assert set(found.rejected) >= set(found.cheated)


@pytest.mark.slow  # captures and trains four tasks
def test_every_attack_has_a_task_that_it_applies_to() -> None:
    tasks = [target(*kind) for kind in (MLP, ADAM, CNN, ("tuned", "adamw"))]
    assert [attack.name for attack in ATTACKS if not any(attack.applies(task) for task in tasks)] == []


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
    looked = {attack.name for attack in (*looked_segments.ATTACKS, *looked_segments.LADDERS)}
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
