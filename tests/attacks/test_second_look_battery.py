"""What a second look gives to mild attacks: nearer to the limit, but none that saves work, and none in all segments."""

from dataclasses import replace
from functools import cache

import pytest

from attack_tasks import findings, target
from lab.attacks import battery
from lab.attacks.verification_outcome import Findings, mount
from pol.verification.verdict.second_look import LOOKS


@cache
def looked(name: str) -> Findings:
    return mount(battery.named(name), replace(target(), looks=LOOKS))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("tf32", 0.75),
        ("rate+1%", 1.0),
        pytest.param("fp16-checkpoints", 1.0, marks=pytest.mark.slow),
        pytest.param("bf16-autocast", 1.0, marks=pytest.mark.slow),
        pytest.param("one-pixel", 1.0, marks=pytest.mark.slow),
        pytest.param("scale-1.001w", 1.0, marks=pytest.mark.slow),
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
