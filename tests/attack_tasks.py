"""Small tasks for the attack battery, made once per test process, and what each attack is expected to come to."""

from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch

from lab.attacks import battery, target_tasks
from lab.attacks.attack_target import Target
from lab.attacks.verification_outcome import Findings, mount
from pol.verification.verdict.second_look import LOOKS
from pol.verification.verdict.verdict import Outcome

STEPS, INTERVAL = 60, 5
SEGMENTS = STEPS // INTERVAL
MLP, ADAM, CNN = ("mlp", "sgd"), ("mlp", "adamw"), ("cnn", "adamw")
TUNED, WIDE = ("tuned", "adamw"), ("wide", "sgd")


@cache
def target(model: str = "mlp", optimizer: str = "sgd") -> Target:
    """A task of twelve segments on the digits; thresholds alone decide."""
    torch.set_num_threads(1)
    return replace(target_tasks.target(model, optimizer, STEPS, INTERVAL), looks=0)


@cache
def findings(name: str, model: str = "mlp", optimizer: str = "sgd") -> Findings:
    """What verification of the whole forgery finds."""
    return mount(battery.named(name), target(model, optimizer))


@cache
def looked(name: str, model: str = "mlp", optimizer: str = "sgd") -> Findings:
    """The same with second looks."""
    return mount(battery.named(name), replace(target(model, optimizer), looks=LOOKS))


@dataclass(frozen=True)
class Expected:
    """``cost``: share of the honest steps. ``cheated``: segments, None if the proof is refused before any replay."""

    cost: float
    cheated: int | None
    on: tuple[str, str] = MLP


def check(name: str, want: Expected) -> Findings:
    """The attack costs what it should, every segment that it cheats in is rejected, and no other; exact mode too."""
    found = findings(name, *want.on)
    assert found.cost == pytest.approx(want.cost)
    assert not found.passes_exact
    if want.cheated is None:
        assert found.refused is not None
        assert found.caught(0) == 1.0
        return found
    assert found.refused is None
    assert len(found.cheated) == want.cheated
    if found.attack.hides:
        assert not found.rejected
        assert found.cost >= 1.0, "nothing that the tolerance misses saves work"
        return found
    assert found.rejected == found.cheated
    assert found.detection == 1.0
    for index, segment in enumerate(found.segments):
        assert (segment.outcome is Outcome.ACCEPTED) == (index not in found.cheated)
    return found
