"""The battery as a whole, its document and what it claims."""

import json
from pathlib import Path

import pytest
import torch

from attack_tasks import ADAM, CNN, MLP, findings, target
from lab.attacks import honest_reruns, target_tasks
from lab.attacks.battery import ATTACKS
from lab.attacks.verification_outcome import limits
from lab.benchmarks.attack_battery import KINKED, SIZES, document, figures, row

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
