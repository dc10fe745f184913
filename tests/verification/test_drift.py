"""Drift: residuals of independent roundings, of pushes in one direction, and of what lies between them."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

import chosen_rows
from lab.attacks import honest_reruns, target_tasks
from lab.attacks.attack_target import State, Target
from lab.attacks.forgery import Forgery, Workshop, publish
from lab.attacks.within_tolerance import back_door, below_the_grid, drifting
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import publish as publish_task
from pol.verification.examination.verification_report import document
from pol.verification.examination.verify_training import Sampling, verify
from pol.verification.profile.profiling import measure_profile
from pol.verification.verdict.drift import BUCKETS, CHANCE, SHARED, Direction, Drift, direction, drifts
from pol.verification.verdict.verdict import Outcome, Reason

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
