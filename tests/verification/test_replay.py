"""Replay is the program's meaning, step by step; claims measure it."""

import numpy as np
import pytest

import toy_program
from pol.claims.distance import UNEQUAL, component_distances, slot_distances
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.execution.reference import ReferenceExecutor, next_state
from pol.graph.step_program import Component
from pol.verification.profile.state_metrics import component_metrics as metrics
from pol.verification.replay.canonical_replay import replay, replay_end
from pol.verification.verdict.segment_verification import measure_segment
from pol.verification.verdict.verdict import Outcome, Reason, decide

PROGRAM = toy_program.build()
EXECUTOR = ReferenceExecutor(PROGRAM, toy_program.constants())
TYPES = [slot.type for slot in PROGRAM.slots]


def test_replay_is_one_step_after_another() -> None:
    state = toy_program.initial_state()
    expected = []
    for step in range(7, 11):
        state = next_state(PROGRAM, EXECUTOR.run(state, step))
        expected.append(state_root(TYPES, state))
    states = replay(PROGRAM, EXECUTOR, toy_program.initial_state(), 7, 4)
    assert [state_root(TYPES, replayed) for replayed in states] == expected
    assert state_root(TYPES, replay_end(PROGRAM, EXECUTOR, toy_program.initial_state(), 7, 4)) == expected[-1]
    assert replay_end(PROGRAM, EXECUTOR, toy_program.initial_state(), 7, 0)[0] is not None


def test_the_step_matters() -> None:
    a, b = (replay_end(PROGRAM, EXECUTOR, toy_program.initial_state(), first, 2) for first in (0, 2))
    assert state_root(TYPES, a) != state_root(TYPES, b)


def test_a_state_of_another_shape_is_refused() -> None:
    state = toy_program.initial_state()
    for bad in (state[:2], [state[0].T, *state[1:]], [state[0].view(np.float32), *state[1:]]):
        with pytest.raises(ProtocolError):
            next(replay(PROGRAM, EXECUTOR, bad, 0, 1))  # type: ignore[arg-type]  # on purpose


def test_a_claim_holds_what_was_measured() -> None:
    start = toy_program.initial_state()
    replayed = replay_end(PROGRAM, EXECUTOR, start, 10, 5)
    end = [words.copy() for words in replayed]
    end[0].view(np.float32).flat[17] += np.float32(0.25)
    claim = measure_segment(PROGRAM, EXECUTOR, start, end, segment=2, interval=5)
    assert claim.segment == 2
    assert (claim.start, claim.end, claim.replay) == tuple(state_root(TYPES, s) for s in (start, end, replayed))
    before, after = (s[0].view(np.float32).flat[17] for s in (replayed, end))
    assert claim.distances == ((int(before * 2.0**40) - int(after * 2.0**40)) ** 2, 0, 0)
    assert claim.references == component_distances(PROGRAM, replayed, start)
    assert claim.references[1] == UNEQUAL  # one integer moved


def test_a_counter_has_to_be_right() -> None:
    """Honest work moves it, and other roundings don't excuse a wrong one."""
    start = toy_program.initial_state()
    end = [words.copy() for words in replay_end(PROGRAM, EXECUTOR, start, 10, 5)]
    end[0].flat[17] ^= 1
    limits = (1 << 24, 1 << 24, 1 << 24)
    honest = decide(measure_segment(PROGRAM, EXECUTOR, start, end, segment=2, interval=5), limits)
    assert honest.claim is not None
    assert honest.claim.distances[0] > 0
    assert (honest.outcome, honest.reasons) == (Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,))
    for wrong in (start[2], end[2] + np.uint32(1), end[2] ^ np.uint32(1 << 31)):
        forged = [end[0], end[1], wrong]
        verdict = decide(measure_segment(PROGRAM, EXECUTOR, start, forged, segment=2, interval=5), limits)
        assert (verdict.outcome, verdict.reasons) == (Outcome.REJECTED, (Reason.INTEGERS_DIFFER,))


def test_distances_keep_components_apart() -> None:
    x, y = toy_program.initial_state(), toy_program.initial_state()
    y[1][0, 0] = 0x3F800000
    assert component_distances(PROGRAM, x, y) == (0, 0, 2**80)
    assert slot_distances(PROGRAM, x, y, Component.OPTIMIZER) == [0, 2**80, 0]
    assert slot_distances(PROGRAM, x, y, Component.PARAMETER) == [0, 0, 0]


def test_metrics_for_people() -> None:
    start, x, y = toy_program.initial_state(), toy_program.initial_state(), toy_program.initial_state()
    x[1].view(np.float32).flat[:2] = [3.0, 4.0]
    y[1].view(np.float32).flat[:2] = [6.0, 8.0]
    found = metrics(PROGRAM, start, x, y, Component.OPTIMIZER)
    assert found is not None
    assert (found.l1, found.l2, found.linf) == (7.0, 5.0, 4.0)
    assert (found.relative_l1, found.relative_l2, found.relative_linf) == (1.0, 1.0, 1.0)
    assert abs(found.cosine) < 1e-15
    assert metrics(PROGRAM, start, x, y, Component.BUFFER) is None
