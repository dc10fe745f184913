"""Drift: residuals of independent roundings, of pushes in one direction, and of what lies between them.

Pairs of segments replayed as one, and slots beside their own ways: what `pol verify` makes of both.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

import chosen_rows
from lab.attacks import ballast, honest_reruns, target_tasks
from lab.attacks.attack_target import State, Target, numbers, words_of
from lab.attacks.battery import named
from lab.attacks.forgery import Forgery, Workshop, publish
from lab.attacks.within_tolerance import back_door, below_the_grid, drifting
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture
from pol.graph.step_program import Component
from pol.graph.sum_reordering import reorder
from pol.training.storage.store import Store
from pol.training.task.learning_proof import TaskCheckpoint
from pol.training.task.published_task import load
from pol.training.task.published_task import publish as publish_task
from pol.verification.engines.engine import ReplayJob, lost_segment
from pol.verification.examination.verification_report import VerificationReport, document
from pol.verification.examination.verify_training import Sampling, verify
from pol.verification.profile.profiling import measure_profile
from pol.verification.verdict.drift import BUCKETS, CHANCE, SHARED, Direction, Drift, direction, drifts
from pol.verification.verdict.segment_pairs import ends_of, paired_entry, paired_task, pairs_of
from pol.verification.verdict.segment_verification import measure_segment
from pol.verification.verdict.slot_residual import MARGIN, SHARE, SlotExaminer
from pol.verification.verdict.verdict import Outcome, Reason, decide

STEPS, INTERVAL = 48, 2
SEED = bytes(range(32))


@cache
def target(model: str, optimizer: str) -> Target:
    torch.set_num_threads(1)
    return target_tasks.target(model, optimizer, STEPS, INTERVAL)


def scores(goal: Target, states: list[State]) -> dict[Component, Drift]:
    found = [
        direction(goal.task.program, goal.segment_end(start, segment), end, SEED)
        for segment, (start, end) in enumerate(pairwise(states))
    ]
    return {drift.component: drift for drift in drifts(found)}


@pytest.mark.parametrize("kind", [("mlp", "sgd"), ("mlp", "adamw"), ("cnn", "adamw")], ids=" ".join)
@pytest.mark.parametrize("way", chosen_rows.first(["without oneDNN", "eager", "graph"], 1, others=pytest.mark.long))
def test_honest_roundings_point_anywhere(kind: tuple[str, str], way: str) -> None:
    goal = target(*kind)
    found = scores(goal, honest_reruns.run(goal, way))
    assert found
    assert all(drift.score < drift.limit / 1.3 for drift in found.values()), found


@pytest.mark.parametrize(
    ("attack", "kind", "component"),
    [
        (drifting, ("mlp", "sgd"), Component.PARAMETER),
        (drifting, ("mlp", "adamw"), Component.PARAMETER),
        (drifting, ("cnn", "adamw"), Component.PARAMETER),
        (below_the_grid, ("mlp", "adamw"), Component.OPTIMIZER),
        (back_door, ("mlp", "adamw"), Component.OPTIMIZER),
    ],
)
def test_pushes_point_in_one(
    attack: Callable[[Workshop], Forgery], kind: tuple[str, str], component: Component
) -> None:
    goal = target(*kind)
    found = scores(goal, list(attack(Workshop(goal)).states))
    assert found[component].is_found, found
    assert found[component].score > 1.1 * found[component].limit


@pytest.mark.parametrize("draws", [None, 20])
def test_a_training_that_drifts_is_rejected_though_each_segment_is_accepted(draws: int | None) -> None:
    goal = target("mlp", "sgd")
    store = Store("memory://drifting")
    publish_in(store)
    profile = store.put(measure_profile(goal.task).encode())
    sampling = Sampling(everything=draws is None, draws=draws, seed=SEED)
    for forge, outcome in ((drifting, Outcome.REJECTED), (honestly, Outcome.ACCEPTED)):
        proof = store.put(publish(store, goal, forge(Workshop(goal))).encode())
        found = verify(store, proof, profile=profile, sampling=sampling)
        assert found.verdict.outcome is outcome, found.verdict.detail
        assert all(segment.verdict.outcome is Outcome.ACCEPTED for segment in found.verdict.examined)
        drift = document(found)["drift"]
        assert drift["seed"] == SEED.hex()
        if outcome is Outcome.REJECTED:
            assert found.verdict.reasons == (Reason.DRIFT,)
            assert "points in one direction: parameter" in found.verdict.detail
            assert drift["components"]["parameter"]["score"] > drift["components"]["parameter"]["limit"]


def test_exact_mode_looks_for_no_drift() -> None:
    goal = target("mlp", "sgd")
    store = Store("memory://exactly")
    publish_in(store)
    proof = store.put(publish(store, goal, Forgery(goal.honest)).encode())
    found = verify(store, proof, exact=True, sampling=Sampling(draws=3))
    assert found.verdict.outcome is Outcome.ACCEPTED
    assert document(found)["drift"] == {"seed": None, "components": {}}


def publish_in(store: Store) -> None:
    step = target_tasks.captured("mlp", "sgd", STEPS)
    publish_task(store, step, steps=STEPS, interval=INTERVAL, model="mlp", optimizer="sgd")


def honestly(workshop: Workshop) -> Forgery:
    return Forgery(honest_reruns.run(workshop.target, "eager"))


def unit(random: np.random.Generator, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = random.standard_normal(size)
    return found / np.linalg.norm(found)


@pytest.mark.long
@pytest.mark.parametrize("dimensions", [1, 3, 500])
def test_what_chance_gives(dimensions: int) -> None:
    """However few directions honest machines differ in, they seldom reach the limit."""
    random = np.random.default_rng(dimensions)
    basis = np.stack([unit(random, BUCKETS) for _ in range(dimensions)])
    exceeded = 0
    for _ in range(2000):
        sketches = [unit(random, dimensions) @ basis for _ in range(30)]
        (drift,) = drifts([Direction((sketch, None, None)) for sketch in sketches])
        exceeded += drift.is_found
    assert exceeded <= 2


def test_the_limit_is_that_of_chance_or_of_a_shared_direction() -> None:
    assert Drift(Component.PARAMETER, 12, 0.0).limit == CHANCE
    assert Drift(Component.PARAMETER, 101, 0.0).limit == 1 + SHARED * 100
    shared = np.zeros(BUCKETS)
    shared[0] = 1.0
    (drift,) = drifts([Direction((None, shared, None))] * 40)
    assert (drift.component, drift.segments, drift.score) == (Component.BUFFER, 40, 40.0)
    assert drift.is_found
    assert drifts([Direction((None, None, None))]) == ()


def test_a_sketch_keeps_lengths_and_depends_on_its_seed() -> None:
    goal = target("mlp", "sgd")
    start, end = goal.honest[0], goal.honest[1]
    one, same, other = (direction(goal.task.program, start, end, seed).sketches[0] for seed in (SEED, SEED, b"else"))
    assert one is not None
    assert same is not None
    assert other is not None
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)
    for sketch in (one, other):
        assert 0.7 < float(sketch @ sketch) < 1.3


def test_numbers_that_are_not_finite_count_as_none() -> None:
    goal = target("mlp", "sgd")
    end = [words.copy() for words in goal.honest[1]]
    end[0].reshape(-1)[0] = 0x7FC00000
    found = direction(goal.task.program, goal.honest[0], end, SEED)
    assert all(sketch is None or np.isfinite(sketch).all() for sketch in found.sketches)
    assert direction(goal.task.program, end, end, SEED).sketches == (None, None, None)


@cache
def paired_target(optimizer: str) -> Target:
    torch.set_num_threads(1)
    return target_tasks.target("mlp", optimizer, STEPS, INTERVAL)


def verified(goal: Target, step: Capture, forgery: Forgery) -> VerificationReport:
    store = Store(f"memory://pairs-{uuid.uuid4().hex}")
    own = goal.task.document
    digest, _ = publish_task(store, step, steps=STEPS, interval=INTERVAL, model=own.model, optimizer=own.optimizer)
    assert digest == goal.task.digest
    profile = store.put(measure_profile(goal.task).encode())
    proof = store.put(publish(store, goal, forgery).encode())
    return verify(store, proof, profile=profile, sampling=Sampling(everything=True, seed=SEED))


@pytest.mark.parametrize("count", [1, 2, 3, 40, 41])
def test_pairs_hold_replayed_segments_and_a_solver_can_not_know_which(count: int) -> None:
    every = list(range(count))
    pairs = pairs_of(every, count, SEED)
    assert pairs == list(range(count // 2))
    drawn = every[: count // 2]
    pairs = pairs_of(drawn, count, SEED)
    assert len(pairs) == min(-(-len(drawn) // 2), max(3, -(-len(drawn) // 4)))
    assert all(pair >= 0 and 2 * pair + 1 < count for pair in pairs)
    assert max(ends_of(pairs), default=0) <= count
    if count >= 40:
        assert pairs != pairs_of(drawn, count, bytes(32))
        assert pairs_of([7], count, SEED) == [3]
    if count == 41:
        assert pairs_of([40], count, SEED) == []


def test_a_pair_is_a_segment_of_twice_the_length() -> None:
    paired = paired_task(paired_target("sgd").task)
    assert (paired.document.interval, paired.document.segments) == (2 * INTERVAL, STEPS // INTERVAL // 2)
    entry = TaskCheckpoint(6, 12, bytes(32), "")
    assert (paired_entry(entry).index, paired_entry(entry).step) == (3, 12)


@pytest.mark.long
def test_what_acts_in_the_next_segment_is_found() -> None:
    goal, step = paired_target("adamw"), target_tasks.captured("mlp", "adamw", STEPS)
    honest = verified(goal, step, Forgery(honest_reruns.run(goal, "eager")))
    assert honest.verdict.outcome is Outcome.ACCEPTED
    assert [pair["outcome"] for pair in document(honest)["pairs"]] == ["accepted"] * 12
    found = verified(goal, step, named("back-door-in-noise").forge(Workshop(goal)))
    assert all(segment.verdict.outcome is Outcome.ACCEPTED for segment in found.verdict.examined)
    assert found.verdict.outcome is Outcome.REJECTED
    assert Reason.PAIR in found.verdict.reasons
    rows = document(found)["pairs"]
    assert [row["segments"] for row in rows[:2]] == [[0, 1], [2, 3]]
    assert sum(row["outcome"] == "rejected" for row in rows) > 3
    assert "lead elsewhere" in found.verdict.detail


def test_a_training_of_nothing_behind_a_ballast_is_found() -> None:
    goal = ballast.ballast_target(STEPS, INTERVAL)
    model = ballast.build()
    order = ballast.order(STEPS, INTERVAL, late=False)
    step = capture(model, ballast.loss, ballast.optimizer(model), digits.dataset(), order)
    found = verified(goal, step, ballast.ATTACKS[0].forge(Workshop(goal)))
    assert all(segment.verdict.outcome is Outcome.ACCEPTED for segment in found.verdict.examined)
    assert found.verdict.outcome is Outcome.REJECTED
    assert Reason.SLOT in found.verdict.reasons
    assert "hidden.weight" in found.verdict.examined[3].verdict.detail


def test_a_slot_is_measured_by_its_own_way_and_by_reruns() -> None:
    goal = paired_target("sgd")
    examiner = SlotExaminer(goal.task, CpuExecutor)
    start, replayed = goal.honest[:2]
    assert examiner.unexplained(0, start, replayed, replayed) == []
    place = goal.task.names.slots.index("output.bias")
    way = numbers(replayed[place]) - numbers(start[place])
    for share, expected in ((0.9 * SHARE, []), (1.1 * SHARE, ["output.bias"])):
        moved = list(replayed)
        moved[place] = words_of((numbers(replayed[place]) + np.float32(share) * way).astype(np.float32))
        assert examiner.unexplained(0, start, replayed, moved) == expected
    assert MARGIN == 64


def test_a_training_that_comes_back_has_gone_a_way() -> None:
    """Two batches in turns, a step a segment: where it has settled, a pair leads back to where it began."""
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = x @ torch.randn(8, 1) + 0.5 * torch.randn(64, 1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.arange(64).reshape(2, 32).repeat(200, 1)
    step = capture(model, torch.nn.functional.mse_loss, optimizer, (x, y), order)
    store = Store(f"memory://turns-{uuid.uuid4().hex}")
    task = load(store, publish_task(store, step, steps=400, interval=1)[0])
    thresholds = measure_profile(task).thresholds
    exact, other = (CpuExecutor(p, task.constants) for p in (task.program, reorder(task.program, 99)))
    states = [task.initial_state]
    for number in range(400):
        states.append(other.advance(states[-1], number)[0])

    def outcomes(halves: bool) -> set[Outcome]:
        claims = (
            measure_segment(task.program, exact, states[2 * p], states[2 * p + 2], p, 2, halves=halves)
            for p in range(150, 200)
        )
        return {decide(claim, thresholds).outcome for claim in claims}

    assert outcomes(halves=True) == {Outcome.ACCEPTED}
    assert Outcome.REJECTED in outcomes(halves=False)


def test_a_worker_that_is_lost_at_a_pair_loses_the_pair() -> None:
    job = ReplayJob("", "", TaskCheckpoint(6, 12, bytes(32), ""), TaskCheckpoint(8, 16, bytes(32), ""), (1, 1, 1))
    assert lost_segment(job, "killed").verdict.segment == 6
    assert lost_segment(replace(job, is_pair=True), "killed").verdict.segment == 3
