"""A training with AdamW and everything around it: solved natively, verified canonically, cheats found."""

from functools import cache

import numpy as np
import pytest
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR

from pol.claims.acceptance_rule import relative_distance
from pol.claims.distance import tensor_distance
from pol.demo import digits
from pol.demo.cheating_training import SkippingExecutor
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Loop, capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import StepExecutor, environment, train
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Verdict

STEPS, INTERVAL = 20, 5


@cache
def published() -> tuple[Store, LoadedTask]:
    model = digits.build_model(1)
    weights = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() == 1]
    optimizer = AdamW([{"params": weights, "weight_decay": 0.1}, {"params": rest, "lr": 2e-3}], 1e-3, weight_decay=0.0)
    loop = Loop(scheduler=CosineAnnealingLR(optimizer, STEPS), clip_norm=1.0, accumulation=2, ema=0.9)
    order = digits.order(1, STEPS)
    captured = capture(model, digits.loss_function, optimizer, digits.dataset(), order, loop)
    store = Store("memory://adamw")
    digest, _ = publish(store, captured, steps=STEPS, interval=INTERVAL, model="MLP 64-64-10", optimizer="AdamW")
    return store, load(store, digest)


@cache
def thresholds() -> Profile:
    return measure_profile(published()[1], CpuExecutor, 2, 2)


def verdicts(solver: StepExecutor) -> list[Verdict]:
    store, task = published()
    recorder = TaskRecorder(store, task)
    train(task, solver, recorder)
    _, proof = recorder.publish(environment())
    replay = CpuExecutor(task.program, task.constants)
    limits = thresholds().thresholds
    return [verify_segment(store, task, proof, replay, segment, limits) for segment in range(STEPS // INTERVAL)]


def test_an_honest_training_with_adamw_is_accepted() -> None:
    task = published()[1]
    found = verdicts(NativeExecutor(task.aten))
    assert [verdict.outcome.name for verdict in found] == ["ACCEPTED"] * len(found), [v.detail for v in found]
    for verdict in found:
        assert verdict.claim is not None
        for distance, reference in zip(verdict.claim.distances, verdict.claim.references, strict=True):
            assert relative_distance(distance, reference) < 1e-4


def test_a_left_out_step_is_found() -> None:
    task = published()[1]
    outcomes = [v.outcome.name for v in verdicts(SkippingExecutor(NativeExecutor(task.aten), {7}))]
    assert outcomes == ["ACCEPTED", "REJECTED", "ACCEPTED", "ACCEPTED"]


def test_distances_see_second_moments() -> None:
    """Second moments one percent off stand out in the distance of their slot."""
    task = published()[1]
    end = replay_end(task.program, CpuExecutor(task.program, task.constants), task.initial_state, 0, INTERVAL)
    slots = {name: index for index, name in enumerate(task.names.slots) if name.endswith("exp_avg_sq")}
    assert len(slots) == 4
    for index in slots.values():
        slot = task.program.slots[index]
        assert slot.component is Component.OPTIMIZER
        moved = (end[index].view(np.float32) * np.float32(1.01)).view(np.uint32)
        distance = tensor_distance(slot.type.dtype, end[index], moved, slot.scale)
        reference = tensor_distance(slot.type.dtype, end[index], task.initial_state[index], slot.scale)
        assert relative_distance(distance, reference) == pytest.approx(0.01, rel=0.01)


def test_one_thread_and_two_give_the_same_canonical_state() -> None:
    task = published()[1]
    ends = [
        replay_end(task.program, CpuExecutor(task.program, task.constants, threads=threads), task.initial_state, 0, 3)
        for threads in (1, 2)
    ]
    for left, right in zip(*ends, strict=True):
        np.testing.assert_array_equal(left, right)
