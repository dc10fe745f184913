"""Whole games on the toy program: the honest side wins, whoever lies and wherever."""

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import toy

from pol.commitments.program import ProgramCommitment, program_hash, program_header
from pol.commitments.tensor import constants_root
from pol.dispute.evidence import SegmentTrace
from pol.dispute.header import Header
from pol.dispute.hostile import BaselessChallenger, LyingSums, LyingTrace, draw_lie
from pol.dispute.moves import Claim, Ended, IllegalMove, Move, Open, Pick, ProveStep
from pol.dispute.openings import WrongInclusionProof
from pol.dispute.players import (
    Asserter,
    Challenger,
    NothingToDispute,
    ReplayAsserter,
    ReplayChallenger,
    SumAsserter,
    SumChallenger,
)
from pol.dispute.position import Level, Position, replay_start, sum_start
from pol.dispute.record import Record
from pol.dispute.rules import apply, is_asserters_turn
from pol.dispute.sums import SumEvidence
from pol.errors import ProtocolError
from pol.execution.reference import ReferenceExecutor

FIRST, STEPS = 3, 20


@pytest.fixture(scope="module")
def honest() -> SegmentTrace:
    program, constants = toy.build(), toy.constants()
    executor = ReferenceExecutor(program, constants)
    return SegmentTrace(program, constants, executor, toy.initial_state(), FIRST, STEPS)


@pytest.fixture(scope="module")
def claim(honest: SegmentTrace) -> Claim:
    return Claim(
        ProgramCommitment.of(honest.program).hash,
        constants_root(honest.program.constants, honest.constants),
    )


def play(
    position: Position, asserter: Asserter, challenger: Challenger, claim: Claim
) -> tuple[Ended, list[tuple[Position, Move]]]:
    moves: list[tuple[Position, Move]] = []
    opened = b""
    while True:
        move = asserter.answer(position) if is_asserters_turn(position) else challenger.choose(position, opened)
        opened = move.payload if isinstance(move, Open) else b""
        moves.append((position, move))
        after = apply(position, move, claim)
        if isinstance(after, Ended):
            return after, moves
        position = after


def start_of(trace: SegmentTrace, claimed: SegmentTrace) -> Position:
    header = Header.decode(program_header(trace.program), program_hash(trace.program))
    ends = trace.state_root(FIRST), claimed.state_root(FIRST + STEPS)
    return replay_start(header.nodes, header.nodes_tree, FIRST, STEPS, *ends)


@pytest.mark.parametrize("seed", range(12))
def test_a_lie_in_one_bit_is_convicted(honest: SegmentTrace, claim: Claim, seed: int) -> None:
    lie = draw_lie(honest, range(6), Random(seed))
    liar = LyingTrace(honest, lie)
    ended, moves = play(start_of(honest, liar), ReplayAsserter(liar), ReplayChallenger(honest), claim)
    assert not ended.asserter_won
    last = moves[-1][0]
    assert last.level is Level.ONE_STEP
    assert (last.step, last.node, last.element, last.term, last.instruction) == (
        lie.step, lie.node, lie.element, lie.term, lie.instruction,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_a_baseless_challenge_fails(honest: SegmentTrace, claim: Claim, seed: int) -> None:
    ended, _ = play(start_of(honest, honest), ReplayAsserter(honest), BaselessChallenger(Random(seed)), claim)
    assert ended.asserter_won


def test_an_honest_challenger_finds_nothing_in_an_honest_claim(honest: SegmentTrace, claim: Claim) -> None:
    """It walks on while only ends are in dispute, and says so as soon as it sees the difference isn't there."""
    with pytest.raises(NothingToDispute):
        play(start_of(honest, honest), ReplayAsserter(honest), ReplayChallenger(honest), claim)


def test_a_wrong_slot_under_a_right_trace_is_convicted(honest: SegmentTrace, claim: Claim) -> None:
    """The liar executes honestly and then claims a state that its own trace doesn't produce."""

    class Swapper(SegmentTrace):
        def state(self, step: int) -> list[np.ndarray]:
            state = list(super().state(step))
            if step == FIRST + STEPS:
                state[1] = state[1].copy()
                state[1].reshape(-1)[17] ^= 1
            return state

    args = (honest.program, honest.constants, honest.executor, honest.state(FIRST), FIRST, STEPS)
    swapper = Swapper(*args)
    position, opened = start_of(honest, swapper), b""
    asserter, challenger = ReplayAsserter(swapper), ReplayChallenger(honest)
    while position.level is not Level.SLOT:
        asserters = is_asserters_turn(position)
        move = asserter.answer(position) if asserters else challenger.choose(position, opened)
        opened = move.payload if isinstance(move, Open) else b""
        after = apply(position, move, claim)
        assert isinstance(after, Position)
        position = after
    assert position.element == 1
    with pytest.raises(IllegalMove):
        apply(position, asserter.answer(position), claim)


@pytest.mark.parametrize("component", [1, 2, 3])
def test_sums(honest: SegmentTrace, claim: Claim, component: int) -> None:
    x, y = honest.state(FIRST + STEPS), honest.state(FIRST)
    sums = SumEvidence(honest.program, component, x, y)
    roots = honest.state_root(FIRST + STEPS), honest.state_root(FIRST)
    slots = len(honest.program.slots)
    start = sum_start(slots, component, *roots, sums.total())
    right, _ = play(start, SumAsserter(sums), BaselessChallenger(Random(component)), claim)
    assert right.asserter_won
    with pytest.raises(NothingToDispute):
        play(start, SumAsserter(sums), SumChallenger(sums), claim)
    for slot in range(slots):
        liar = LyingSums(sums, slot, 0, 7)
        if liar.total() == sums.total():
            continue
        lie = sum_start(slots, component, *roots, liar.total())
        wrong, _ = play(lie, SumAsserter(liar), SumChallenger(sums), claim)
        assert not wrong.asserter_won


def test_moves_out_of_turn_and_malformed_moves_are_refused(honest: SegmentTrace, claim: Claim) -> None:
    """Every move of a full game: the same move again, a truncated one and a flipped one are illegal."""
    lie = draw_lie(honest, [1], Random(5))
    liar = LyingTrace(honest, lie)
    _, moves = play(start_of(honest, liar), ReplayAsserter(liar), ReplayChallenger(honest), claim)
    seen = set()
    for position, move in moves:
        seen.add(position.level)
        wrong_turn: Move = Pick(0, b"") if is_asserters_turn(position) else Open(b"")
        with pytest.raises(IllegalMove, match="turn"):
            apply(position, wrong_turn, claim)
        if isinstance(move, Open):
            with pytest.raises((IllegalMove, Exception)):
                apply(position, Open(move.payload[:-1]), claim)
        if isinstance(move, Pick) and position.level is not Level.BODY:
            with pytest.raises(IllegalMove):
                apply(position, replace(move, payload=move.payload + b"\0"), claim)
            with pytest.raises(IllegalMove):
                apply(position, replace(move, index=1 << 20), claim)
        if isinstance(move, ProveStep):
            opening = move.openings[0]
            forged = replace(opening, leaf=bytes([opening.leaf[0] ^ 1]) + opening.leaf[1:])
            with pytest.raises(WrongInclusionProof):
                apply(position, replace(move, openings=(forged, *move.openings[1:])), claim)
            with pytest.raises(IllegalMove):
                apply(position, replace(move, openings=move.openings[:-1]), claim)
    assert {Level.STEPS, Level.TRACE, Level.NODES, Level.NODE, Level.LEAF, Level.TERMS, Level.ONE_STEP} <= seen


def test_a_record_replays_and_survives_json(honest: SegmentTrace, claim: Claim) -> None:
    liar = LyingTrace(honest, draw_lie(honest, [3], Random(9)))
    ended, moves = play(start_of(honest, liar), ReplayAsserter(liar), ReplayChallenger(honest), claim)
    record = Record(claim, moves[0][0], tuple(move for _, move in moves))
    again = Record.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again == record
    *_, last = again.walk()
    assert last[2] == ended
    damaged = record.to_dict()
    del damaged["moves"][0]["payload"]
    with pytest.raises(ProtocolError):
        Record.from_dict(damaged)
