"""A screen names segments that don't look like their neighbours, whatever the schedule."""

import math

import numpy as np
import pytest
from trained import checkpoints, honest, loaded, proof_over, solve

from pol.verification.screening import score, screen


def test_a_schedule_is_not_suspicious_and_a_dent_in_it_is() -> None:
    honest_named = 0
    for seed in range(20):
        noise = np.exp(0.05 * np.random.default_rng(seed).normal(size=70))
        schedule = np.concatenate([np.linspace(0.1, 1, 10), np.cos(np.linspace(0, 1.4, 60))])
        moved = (schedule * noise).tolist()
        honest_named += any(s.is_named for s in score(moved))
        moved[33] *= 0.5
        found = score(moved)
        assert found[33].is_named, seed
        assert max(found, key=lambda s: s.score).segment == 33, seed
    assert honest_named <= 2


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf])
def test_what_has_no_size_is_the_most_suspicious(bad: float) -> None:
    found = score([1.0, 1.1, bad, 1.0])
    assert [s.segment for s in found if s.is_named] == [2]
    assert found[2].score == math.inf


def test_little_is_known_of_few() -> None:
    assert [s.score for s in score([3.0])] == [0.0]
    assert score([]) == []


def test_skipped_steps_and_repeated_checkpoints() -> None:
    training = solve(skipped=range(150, 170))  # most of segment 6
    assert screen(training.store, loaded(), training.proof)[0].segment == 6
    states = checkpoints(honest())
    repeated = proof_over([*states[:5], states[4], *states[6:]])
    seen: list[tuple[int, int]] = []
    first = screen(repeated.store, loaded(), repeated.proof, lambda done, total: seen.append((done, total)))[0]
    assert (first.segment, first.moved, first.score) == (4, 0.0, math.inf)
    assert seen == [(i, 13) for i in range(1, 14)]
