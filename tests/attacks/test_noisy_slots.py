"""Tasks in which a slot moves by rounding alone: a cheat would hide in its noise, so no profile admits them.

A bias before a normalization, and one on the keys of attention, have a gradient of zero but for rounding, which Adam
scales up to whole steps. With limits that such noise sets, a solver could collapse a network, or steer it, unseen.
"""

from collections.abc import Callable

import pytest
from torch import nn

from lab.attacks.noisy_slots import Attention, Normalized, task_of
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.verification.profile.profiling import measure_profile, require_thresholds


@pytest.mark.parametrize(
    ("build", "interval", "noisy"),
    [(Normalized, 10, "conv.bias"), (Attention, 10, "key.bias"), (Attention, 50, "key.bias")],
)
def test_the_noisy_slot_is_named_and_the_task_refused(
    build: Callable[[bool], nn.Module], interval: int, noisy: str
) -> None:
    task = task_of(build, True, interval)
    found = measure_profile(task, CpuExecutor)
    with pytest.raises(UnsupportedError, match=rf"Use exact mode.* Of the parameter state it is {noisy} \(100%\)"):
        require_thresholds(task, CpuExecutor, found)


@pytest.mark.parametrize(("build", "interval"), [(Normalized, 10), (Attention, 10)])
def test_without_it_the_limits_are_those_of_rounding(build: Callable[[bool], nn.Module], interval: int) -> None:
    task = task_of(build, False, interval)
    found = measure_profile(task, CpuExecutor)
    require_thresholds(task, CpuExecutor, found)
    assert max(found.thresholds) < (1 << 64) * 1e-4**2
