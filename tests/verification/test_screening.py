"""A screen points at segments that don't look like their neighbours, whatever the schedule; it decides nothing."""

import math
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import toy_program
from digits_training import checkpoints, honest, loaded, proof_over, solve
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.verification.examination.screening import SUSPICIOUS, oddness, ranked, screen, suspicions

PROGRAM = toy_program.build()
SEGMENTS = 20


def trail(change: dict[int, float] | None = None, turn: int | None = None) -> list[list[Words]]:
    """States whose updates have one length and keep their direction, but for some."""
    random = np.random.default_rng(3)
    way = random.normal(size=toy_program.WEIGHT.shape)
    weight, momentum = random.normal(size=toy_program.WEIGHT.shape), np.zeros(toy_program.WEIGHT.shape)
    states = []
    for segment in range(SEGMENTS + 1):
        floats = [np.asarray(part, np.float32).view(np.uint32) for part in (weight, momentum)]
        states.append([*floats, np.array(segment, np.uint32)])
        update = 0.1 * (way + 0.3 * random.normal(size=way.shape)) * (change or {}).get(segment, 1.0)
        if segment == turn:
            update = 0.1 * random.normal(size=way.shape)
        weight, momentum = weight + update, momentum + 0.1 * random.normal(size=way.shape)
    return states


def oddest(states: list[list[Words]], count: int = 1) -> list[int]:
    return [suspicion.segment for suspicion in ranked(suspicions(PROGRAM, states))[:count]]


def test_a_schedule_is_not_odd_and_a_dent_in_it_is() -> None:
    honest_named = 0
    for seed in range(20):
        noise = np.exp(0.05 * np.random.default_rng(seed).normal(size=70))
        schedule = np.concatenate([np.linspace(0.1, 1, 10), np.cos(np.linspace(0, 1.4, 60))])
        moved = schedule * noise
        honest_named += bool((oddness(np.log(moved)) >= SUSPICIOUS).any())
        moved[33] *= 0.5
        found = oddness(np.log(moved))
        assert found[33] >= SUSPICIOUS, seed
        assert found.argmax() == 33, seed
    assert honest_named <= 2


def test_what_isn_t_finite_says_nothing_about_its_neighbours() -> None:
    inf = math.inf
    assert oddness(np.array([1.0, -inf, 1.0, math.nan, 1.0, -inf, 1.0, 1.0, inf, inf, 1.0])).tolist() == [0.0] * 11


def test_little_is_known_of_few() -> None:
    assert oddness(np.array([3.0])).tolist() == [0.0]
    assert oddness(np.array([])).tolist() == []


@pytest.mark.parametrize("change", [{7: 30.0}, {7: 1e-6}, {19: 10.0}, {0: 10.0}])
def test_an_update_of_another_length_comes_first(change: dict[int, float]) -> None:
    assert oddest(trail(change)) == list(change)


def test_an_update_in_another_direction_comes_first() -> None:
    assert oddest(trail(turn=11)) == [11]


def test_nothing_moved_and_nothing_finite_are_the_oddest() -> None:
    states = trail()
    states[5][0] = states[4][0]
    first = ranked(suspicions(PROGRAM, states))[0]
    assert (first.segment, first.moved, first.score, first.is_named) == (4, 0.0, math.inf, True)
    states = trail()
    states[9][0] = np.full_like(states[9][0], 0x7FC00000)
    found = suspicions(PROGRAM, states)
    assert [s.segment for s in found if s.score == math.inf] == [8, 9]
    assert math.isnan(found[8].moved)


@pytest.mark.parametrize("jump", [0, 1, 12, SEGMENTS - 2])
@pytest.mark.parametrize("moving", [0, 1])
def test_the_segment_before_a_standstill_comes_first_however_it_got_there(jump: int, moving: int) -> None:
    """Few numbers move from then on, but as far as all did; the jump itself looks like every other segment."""
    states = trail()
    way = np.zeros(toy_program.WEIGHT.shape)
    way.flat[:moving] = 0.1
    for segment in range(jump + 1, SEGMENTS):
        ended = states[segment][0].view(np.float32) + way.astype(np.float32)
        states[segment + 1][0] = ended.astype(np.float32).view(np.uint32)
    first = ranked(suspicions(PROGRAM, states))[0]
    assert (first.segment, first.score) == (jump, math.inf)


def test_few_that_move_for_a_while_are_no_standstill() -> None:
    states = trail()
    for segment in (5, 6):
        states[segment + 1][0] = states[segment][0].copy()
        states[segment + 1][0].flat[0] ^= 1
    assert [s.segment for s in suspicions(PROGRAM, states) if s.score == math.inf] == []


def test_a_checkpoint_that_cannot_be_seen() -> None:
    states = trail()
    found = suspicions(PROGRAM, [*states[:9], None, *states[10:]])
    assert [s.segment for s in found if s.score == math.inf] == [8, 9]
    assert all(math.isfinite(s.moved) for s in found if s.segment not in (8, 9))


def test_honest_segments_are_not_named() -> None:
    found = suspicions(PROGRAM, trail())
    assert [s.segment for s in found if s.is_named] == []
    assert [s.segment for s in found] == list(range(SEGMENTS))
    assert len(suspicions(PROGRAM, trail()[:2])) == 1


def test_one_state_is_no_training() -> None:
    with pytest.raises(ProtocolError, match="at least two"):
        suspicions(PROGRAM, trail()[:1])
    with pytest.raises(ProtocolError, match="slots"):
        suspicions(PROGRAM, [state[:2] for state in trail()])


def test_skipped_steps_and_repeated_checkpoints() -> None:
    training = solve(skipped=range(150, 170))  # most of segment 6
    assert screen(training.store, loaded(), training.proof)[0].segment == 6
    states = checkpoints(honest())
    repeated = proof_over([*states[:5], states[4], *states[6:]])
    seen: list[tuple[int, int]] = []
    first = screen(repeated.store, loaded(), repeated.proof, lambda done, total: seen.append((done, total)))[0]
    assert (first.segment, first.moved, first.score) == (4, 0.0, math.inf)
    assert seen == [(i, 13) for i in range(1, 14)]


def test_large_states_take_no_copies() -> None:
    """A party screens checkpoints as large as its memory admits: three of them, and no more."""
    plain = TensorType(DType.F32, (1 << 20,))
    move = Builder(1)
    body = move.build(move.emit(Op.MOV, move.input(0)))
    kept = Node(plain, (Operand(Source.STATE, 0, plain, Affine(0, (0, 1))),), (Input(InputKind.OPERAND, 0),), body)
    program = StepProgram((Slot(Component.PARAMETER, plain, 0),), (), (kept,))
    random = np.random.default_rng(5)
    states = [[random.standard_normal(1 << 20, np.float32).view(np.uint32)] for _ in range(6)]
    tracemalloc.start()
    try:
        found = suspicions(program, states)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < states[0][0].nbytes
    lengths = [math.dist(one[0].view(np.float32), two[0].view(np.float32)) for one, two in pairwise(states)]
    assert [s.moved for s in found] == pytest.approx(lengths)
