"""What is computed of a dispute from its program bounds what disputes take, and not by much."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import TypeAlias

import pytest
from adversaries import TamperedState
from tiny_programs import honest_trace

import toy_program
from dispute_harness import Court, LoudTrace, court, dearest_lie, one_step_of, replay_claim
from hostile_players import LyingSums
from lab.benchmarks.whole_dispute import STEPS, TWENTY, Size, _claim, _parties, program
from lab.disputes.dispute_match import KnownTraces, Match, play
from pol.commitments.program_hash import ProgramCommitment
from pol.demo import digits
from pol.dispute.agreed_facts import AtSlot, node_of
from pol.dispute.dispute_needs import DisputeNeeds
from pol.dispute.disputed_claim import DisputedClaim, SumClaim
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.encoding.move_sizes import EXECUTION, MoveSize, dearest_proof, gas_of
from pol.dispute.moves import Move, ProveStep, ProveSum
from pol.dispute.one_step import disputed
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.position import SUMS, Level, Position, Side
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component, Slot
from pol.graph.tensor_type import LEAF_WORDS

pytestmark = pytest.mark.long

SHAPES = [(4, 4, 3), (1, 1, 1), (3, 1, 2), (17, 70, 20), (2, 300, 5)]
"""Nodes, terms of the fold, steps."""
BYTES, GAS, PROOF = 2.1, 1.45, 1.6
"""How far a bound may lie above the largest that was played: calldata, gas of the same calldata, gas of a proof.

Of small programs the largest calldata isn't always played: an instruction that reads two words may be another one."""


def toy(steps: int) -> SegmentTrace:
    program, constants = toy_program.build(), toy_program.constants()
    executor = CpuExecutor(program, constants, threads=1)
    return SegmentTrace(program, constants, executor, toy_program.initial_state(), 3, steps)


def lie_in(honest: SegmentTrace, number: int, random: Random) -> SegmentTrace:
    """A liar about a node in the first step."""
    return LoudTrace(honest, replace(dearest_lie(honest, number, random), step=honest.first_step))


def liars(honest: SegmentTrace, random: Random) -> list[SegmentTrace]:
    """One for each node, and one that claims another state than that of its trace."""
    lies = [lie_in(honest, number, random) for number in range(len(honest.program.nodes))]
    return [*lies, TamperedState(honest, honest.first_step + honest.steps - 1, 0, 0, 20)]


Dispute: TypeAlias = tuple[DisputedClaim, bytes, Player, Player]
"""Claim, header of the program, asserter, challenger."""


def disputes(honest: SegmentTrace, lying: Sequence[SegmentTrace]) -> Iterator[Dispute]:
    """About lies on either side, in states, traces and distances; some show a published trace."""
    header, end = ProgramCommitment.of(honest.program).header, honest.first_step + honest.steps
    for liar, side, shows in product(lying, (Side.ASSERTER, Side.CHALLENGER), (False, True)):
        published = KnownTraces(honest, liar, with_leaves=True) if shows else None
        players = {side: ReplayPlayer(liar, published), side.other: ReplayPlayer(honest, published)}
        claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
        yield claim, header, players[Side.ASSERTER], players[Side.CHALLENGER]
    ends = (end, honest.first_step)
    sums = SumEvidence(honest.program, Component.PARAMETER, *map(honest.state, ends))
    false, about = LyingSums(sums, 0, 0, 17), ProgramCommitment.of(honest.program).hash
    for said, answered in ((false, sums), (sums, false)):
        x, y = map(honest.state_root, ends)
        total = SumClaim(bytes(32), about, Component.PARAMETER, x, y, said.total())
        if said.total() != answered.total():
            yield total, header, SumPlayer(said), SumPlayer(answered)


def made(match: Match) -> list[tuple[Position, Move]]:
    """The moves of both sides, and the vain one at the end."""
    moves: list[tuple[Position, Move]] = [(position, move) for position, move, _ in match.record.walk()]
    return [*moves, (match.last, match.attempt)] if match.attempt is not None else moves


@pytest.mark.parametrize("bits", [1, 2, 4, 5])
@pytest.mark.parametrize("shape", [*SHAPES, None], ids=str)
def test_no_dispute_takes_more_than_is_computed(shape: tuple[int, int, int] | None, bits: int) -> None:
    honest = toy(20) if shape is None else honest_trace(*shape)
    needs = DisputeNeeds(honest.program, honest.steps, bits)
    bounds = {(move.level, move.move): move.calldata for move in needs.possible}
    levels = {each.level: each for each in needs.levels}
    played, most = defaultdict[tuple[Level, str], int](int), 0
    counted = defaultdict[Level, int](int)
    for dispute in disputes(honest, liars(honest, Random(1))):
        match = play(*dispute, bits)
        moves = made(match)
        most = max(most, len(match.record.moves))
        for level in levels:
            counted[level] = max(counted[level], sum(p.level is level for p, _ in moves))
        for position, move in moves:
            key, size = (position.level, type(move).__name__), len(encode(1, position, move))
            played[key] = max(played[key], size)
            assert size <= bounds[key], key
            if isinstance(move, ProveStep):
                number = node_of(position.facts).number
                assert size <= dearest_proof(honest.program, number, bits).calldata
    assert needs.moves - 2 <= most <= needs.moves
    for level, each in levels.items():
        assert counted[level] <= each.moves, level
        assert counted[level] or level in {Level.TERMS, Level.BODY, *SUMS}
    for key, size in played.items():
        assert bounds[key] <= BYTES * size, key


@pytest.fixture(scope="module")
def evm() -> Iterator[Court]:
    with court(hardfork="osaka") as found:
        yield found


def bound_over(position: Position, move: Move, gas: int, needs: DisputeNeeds) -> float:
    """The bound of a move's gas over what was measured, by its own calldata; the bound of its kind holds as well."""
    kind, terms = type(move).__name__, 1
    if isinstance(move, ProveStep):
        shown = disputed(position, move.index)
        terms = shown.end - shown.begin
    if isinstance(move, ProveSum):
        assert isinstance(position.facts, AtSlot)
        leaf, slot = position.boundaries[move.index], Slot.decode(position.facts.descriptor)
        terms = min(LEAF_WORDS, slot.type.numel - LEAF_WORDS * leaf)
    most = gas_of(MoveSize(position.level, kind, len(encode(1, position, move)), terms))
    assert gas <= most, (position.level, kind)
    assert gas <= max(gas_of(each) for each in needs.possible if (each.level, each.move) == (position.level, kind))
    return most / gas


def large(size: Size) -> Iterator[Dispute]:
    """About one element of a product of matrices among a thousand nodes and slots."""
    honest, liar = _parties(size)
    for side, shows in ((Side.ASSERTER, False), (Side.CHALLENGER, False), (Side.ASSERTER, True)):
        published = KnownTraces(honest, liar, with_leaves=True) if shows else None
        players = {side: ReplayPlayer(liar, published), side.other: ReplayPlayer(honest, published)}
        claim = _claim(honest, (liar if side is Side.ASSERTER else honest).state_root(STEPS))
        header = ProgramCommitment.of(honest.program).header
        yield claim, header, players[Side.ASSERTER], players[Side.CHALLENGER]


def games_of(*traces: SegmentTrace) -> list[tuple[DisputeNeeds, Iterator[Dispute]]]:
    """Lies about these traces, each on either side."""
    return [(DisputeNeeds(each.program, each.steps), disputes(each, liars(each, Random(2)))) for each in traces]


def played(evm: Court, games: list[tuple[DisputeNeeds, Iterator[Dispute]]]) -> set[str]:
    """The kinds of moves, no one above its bound, and none far below."""
    seen = set[str]()
    for needs, found in games:
        for dispute in found:
            for position, move, gas in evm.play(*dispute).moves:
                assert bound_over(position, move, gas, needs) <= GAS, (position.level, move)
                seen.add(type(move).__name__)
    return seen


def test_gas_on_an_evm_is_bounded_and_not_by_much(evm: Court) -> None:
    assert played(evm, games_of(toy(1))) <= set(EXECUTION)


def test_gas_of_every_kind_of_move_is_bounded_and_not_by_much(evm: Court) -> None:
    games = games_of(toy(20), *(honest_trace(*shape) for shape in SHAPES))
    sizes = (TWENTY, replace(TWENTY, strided=True))
    games += [(DisputeNeeds(program(size), STEPS), large(size)) for size in sizes]
    captured = digits.captured(0)
    step = one_step_of(captured.program, captured.constants, captured.state)
    folds = [n for n, node in enumerate(captured.program.nodes) if node.terms > 1 and len(node.body.instructions) > 1]
    games.append((DisputeNeeds(captured.program, 1), disputes(step, [lie_in(step, n, Random(4)) for n in folds])))
    assert played(evm, games) == set(EXECUTION)


def test_memory_of_a_step_is_that_of_the_executor() -> None:
    """The executor's block for outputs that share memory, and the next state; rows of kernels come on top."""
    captured = digits.captured(0)
    needs, executor = DisputeNeeds(captured.program, 20), CpuExecutor(captured.program, captured.constants)
    executor.watch(captured.state, 0, lambda number, output: None)
    assert executor._watching is not None
    taken = 4 * executor._watching.arena_words + needs.state_bytes
    assert needs.live_bytes <= taken <= 1.5 * needs.live_bytes
    about = (captured.program, captured.constants, executor, captured.state, 0, 20)
    honest = SegmentTrace(*about, load=lambda: captured.state)
    assert honest.most_bytes == needs.held_state_bytes + needs.node_bytes
    assert needs.memory == needs.constant_bytes + needs.live_bytes + honest.most_bytes
