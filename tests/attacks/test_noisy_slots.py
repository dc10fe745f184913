"""Tasks in which a slot moves by rounding alone: a cheat would hide in its noise, so no profile admits them.

A bias before a normalization, and one on the keys of attention, have a gradient of zero but for rounding, which Adam
scales up to whole steps. With limits that such noise sets, a solver could collapse a network, or steer it, unseen. With
scales by the noise of each tensor the task is admitted, and pushes do nothing.
"""

from collections.abc import Callable

import pytest
from torch import nn

import chosen_rows
from lab.attacks.noisy_slots import (
    PUSHES,
    Attention,
    Fused,
    Normalized,
    Push,
    damage,
    pushed,
    scaled,
    task_of,
    unlimited,
)
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.verification.profile.profiling import measure_profile, require_thresholds


@pytest.mark.parametrize(
    ("build", "interval", "noisy"),
    [
        (Normalized, 10, "conv.bias"),
        *(pytest.param(Attention, interval, "key.bias", marks=pytest.mark.long) for interval in (10, 50)),
    ],
)
def test_the_noisy_slot_is_named_and_the_task_refused(
    build: Callable[[bool], nn.Module], interval: int, noisy: str
) -> None:
    found = measure_profile(task_of(build, True, interval), CpuExecutor)
    with pytest.raises(UnsupportedError, match=rf"weigh each tensor.* Of the parameter state it is {noisy} \(100%\)"):
        require_thresholds(found)


@pytest.mark.parametrize(("build", "interval"), [(Normalized, 10), (Attention, 10)])
def test_without_it_the_limits_are_those_of_rounding(build: Callable[[bool], nn.Module], interval: int) -> None:
    task = task_of(build, False, interval)
    assert max(measure_profile(task, CpuExecutor).thresholds) < (1 << 64) * 1e-4**2


@pytest.mark.long
def test_averages_that_are_small_beside_others_have_no_limit_unless_they_are_weighed() -> None:
    """Squares of the gradients of queries and keys: by them a solver would choose how far Adam goes."""
    with pytest.raises(UnsupportedError, match=r"say nothing about query\.weight:exp_avg_sq"):
        require_thresholds(measure_profile(task_of(Attention, False, 10), CpuExecutor))
    _, profile = scaled(Attention, 10, bias=False)
    require_thresholds(profile)


@pytest.mark.parametrize("push", chosen_rows.first(PUSHES, 1, others=pytest.mark.long), ids=lambda push: push.name)
def test_a_push_damages_unless_each_tensor_is_weighed_by_its_noise(push: Push) -> None:
    task = task_of(push.build, True, push.interval)
    state, rejected = pushed(task, unlimited(measure_profile(task, CpuExecutor)), push)
    assert not rejected
    assert max(damage(task, push.build, state)) > 0.03
    weighed, profile = scaled(push.build, push.interval)
    require_thresholds(profile)
    state, rejected = pushed(weighed, profile.thresholds, push)
    assert not rejected
    assert max(damage(weighed, push.build, state)) < 0.01


@pytest.mark.long
def test_no_scale_helps_a_tensor_of_which_a_part_is_noise() -> None:
    """A third of the bias of queries, keys and values: a solver would put into the rest what it likes."""
    _, profile = scaled(Fused, 50)
    with pytest.raises(UnsupportedError, match=r"qkv\.bias \(.* of which a part moves by rounding alone"):
        require_thresholds(profile)
