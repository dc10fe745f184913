"""torch's own kernels against a profile: real processes, real distances, and what happens when one can't run."""

import json
from dataclasses import replace
from functools import cache

import pytest
import torch

from digits_training import loaded, profiled
from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import INFINITE, component_distances
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import to_module
from pol.graph.step_program import Component
from pol.training.task.task_training import to_tensor, to_words
from pol.verification.profile import torch_reruns
from pol.verification.profile.profile_claim import ProfileClaim
from pol.verification.profile.torch_reruns import NativeRerun, NativeReruns, rerun_natively
from pol.verification.profile.torch_setting import NativeSetting, settings_here
from pol.verification.replay.canonical_replay import replay_end

pytestmark = pytest.mark.long

PLAIN, DOUBLE, NOWHERE = NativeSetting(), NativeSetting(precision="float64"), NativeSetting(device="meta:7")


@cache
def found() -> NativeReruns:
    return rerun_natively(loaded(), CpuExecutor, profiled(), [PLAIN, DOUBLE, NOWHERE])


def test_torch_parts_from_the_canonical_ends_as_far_as_reorderings_do() -> None:
    rows = [(rerun.setting, rerun.portion) for rerun in found().reruns]
    assert rows == [(setting, portion) for setting in (PLAIN, DOUBLE) for portion in range(3)]
    for component in (Component.PARAMETER, Component.OPTIMIZER):
        for setting in (PLAIN, DOUBLE):
            worst = found().worst(setting, component)
            assert worst is not None
            assert 0 < worst <= profiled().thresholds[component - 1]
    assert found().warnings == []
    assert found().reruns[0].environment["threads"] == "1"
    assert [setting for setting, _ in found().failed] == [NOWHERE]


def test_distances_are_those_of_a_run_in_this_process() -> None:
    """In double precision: what torch computes in single precision depends on where its tensors lie in memory."""
    task = loaded()
    interval, slots = task.document.interval, task.aten.slots
    constants = [to_tensor(e.type, w) for e, w in zip(task.aten.constants, task.constants, strict=True)]
    state = [to_tensor(e.type, w).double() for e, w in zip(slots, task.initial_state, strict=True)]
    wide = [t.double() if t.is_floating_point() else t for t in constants]
    module = to_module(task.aten, real=torch.float64)
    for step in range(interval):
        state = list(module(*state, *wide, torch.tensor(step))[: len(slots)])
    words = [to_words(entry.type, tensor.float()) for entry, tensor in zip(slots, state, strict=True)]
    canonical = CpuExecutor(task.program, task.constants)
    end = replay_end(task.program, canonical, task.initial_state, 0, interval)
    (rerun,) = (rerun for rerun in found().reruns if (rerun.setting, rerun.portion) == (DOUBLE, 0))
    assert rerun.distances == component_distances(task.program, end, words)


def test_the_document() -> None:
    document = json.loads(found().encode())
    assert (document["kind"], document["version"], document["task"]) == ("pol/native-reruns", 1, loaded().digest)
    assert document["profile"] == profiled().digest.hex()
    assert len(document["reruns"]) == 6
    assert document["failed"][0]["setting"]["device"] == "meta:7"


def test_a_process_that_dies_fails_all_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_reruns, "WORKER", "pol.nothing")
    dead = rerun_natively(loaded(), CpuExecutor, profiled(), [PLAIN, DOUBLE])
    assert [setting for setting, _ in dead.failed] == [PLAIN, DOUBLE]
    assert "No module named pol.nothing" in dead.failed[0][1]


def test_without_a_folder_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_reruns.tempfile, "tempdir", "/nowhere")
    with pytest.raises(OperationalError, match="processes of their own"):
        rerun_natively(loaded(), CpuExecutor, profiled(), [PLAIN])


def far(ratio: int | None, setting: NativeSetting = PLAIN, claim: ProfileClaim | None = None) -> NativeReruns:
    """A document in which the parameters of one rerun have a ratio."""
    profile = profiled() if claim is None else replace(profiled(), claim=claim)
    distance = INFINITE if ratio is None else 1
    rerun = NativeRerun(setting, 0, (distance, 0, 0), (ratio, 0, 0), {})
    return NativeReruns(profile, (rerun,), ())


def test_warnings_say_what_to_do() -> None:
    threshold, spread = profiled().thresholds[0], profiled().spreads[0]
    assert far(threshold).warnings == []
    (warning,) = far(threshold + 1).warnings
    assert "1 thread would be rejected" in warning
    assert "a margin of 65 would do" in warning
    (much,) = far(100 * threshold).warnings
    assert "10 times as far" in much
    assert "a margin of 640 would do" in much
    assert 640**2 * spread >= 100 * threshold > 639**2 * spread
    assert far(100 * threshold, DOUBLE).warnings == []
    (none,) = far(None).warnings
    assert "no margin helps" in none
    still = replace(profiled().claim, reruns=tuple(replace(r, distances=(0, 0, 0)) for r in profiled().claim.reruns))
    (unmoved,) = far(1 << 30, claim=still).warnings
    assert "no reordering moves it" in unmoved


def test_exact_mode_allows_nothing() -> None:
    exact = replace(profiled(), programs=(), claim=ProfileClaim(0, (), (), (0, 0, 0)), portions=(), reruns=())
    assert exact.thresholds == EXACT
    (warning,) = NativeReruns(exact, far(1).reruns, ()).warnings
    assert "bit for bit" in warning


def test_settings_of_this_machine() -> None:
    settings = settings_here(compiled=False, devices=("cuda:0",))
    assert len(set(settings)) == len(settings)
    assert {"1 thread", "1 thread, no oneDNN", "1 thread, ATen default", "cuda:0"} <= {s.name for s in settings}
    assert settings[-1].is_yardstick
    assert replace(PLAIN, capability="avx2", mkl="COMPATIBLE").environment == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "COMPATIBLE",
    }
    assert not any(setting.compiled for setting in settings)


@pytest.mark.slow
def test_every_setting_of_this_machine_stays_below_the_thresholds() -> None:
    """torch.compile and instruction sets too; what this machine lacks is named, and nothing else."""
    settings = [*settings_here(compiled=True), NativeSetting(capability="avx2"), NativeSetting(capability="avx512")]
    result = rerun_natively(loaded(), CpuExecutor, profiled(), settings)
    assert {s for s, _ in result.failed} <= {NativeSetting(capability="avx2"), NativeSetting(capability="avx512")}
    assert result.warnings == []
    assert {rerun.setting for rerun in result.reruns} >= set(settings_here(compiled=True))
    capabilities = {rerun.environment["capability"] for rerun in result.reruns}
    assert "DEFAULT" in capabilities
    assert len(capabilities) >= 2
