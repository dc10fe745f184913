"""What honest parties spend in a dispute: one pass of the kernels over a long fold, few states, what one node reads."""

import gc
import sys
import weakref
from collections.abc import Sequence
from functools import partial
from random import Random
from types import FrameType

import numpy as np
import pytest

import toy_program
from dispute_harness import sides
from lab.benchmarks import whole_dispute
from lab.disputes.dispute_match import Match, play
from pol.arithmetic.primitives import Words
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.dispute_needs import KEPT_BYTES, read_with
from pol.dispute.play.execution_evidence import KnownElement, SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.kept_traces import KeptTraces
from pol.dispute.play.segment_states import SegmentStates
from pol.dispute.position import Level, Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuElement, CpuExecutor
from pol.execution.disputed_element import accumulators
from pol.execution.executor import Seen
from pol.execution.operand_sources import Sources
from pol.execution.reference import next_state

SIDES = [Side.ASSERTER, Side.CHALLENGER]


def honest_trace(terms: int) -> SegmentTrace:
    program, constants = whole_dispute.fold_program(terms), whole_dispute.fold_constants(terms)
    return SegmentTrace(program, constants, CpuExecutor(program, constants), [np.zeros((), np.uint32)], 0, 1)


def played(honest: SegmentTrace, side: Side) -> Match:
    """A dispute from the fold's first boundaries down to one term, which the honest party wins."""
    match, _ = whole_dispute.fold_dispute(honest, side)
    assert match.winner is side.other, match.detail
    return match


def calls(terms: int, side: Side) -> tuple[int, int]:
    """Calls of Python functions and of compiled ones in a whole dispute, and its moves at the level of terms."""
    honest = honest_trace(terms)
    honest.output(0, 0)
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        match = played(honest, side)
    finally:
        sys.setprofile(before)
    return count, sum(position.level is Level.TERMS for position, _, _ in match.record.walk())


@pytest.mark.parametrize("side", SIDES)
def test_calls_grow_with_the_levels_not_with_the_terms(side: Side) -> None:
    few, few_levels = calls(1 << 12, side)
    many, many_levels = calls(1 << 18, side)
    assert 1 <= few_levels <= many_levels
    assert many < 2 * few, "64 times as many terms"


class Passes:
    """The terms that kernels have computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.terms: list[int] = []
        compute = CpuElement.accumulators

        def noted(
            element: CpuElement,
            step: int,
            sources: Sources,
            terms: Sequence[int],
            begin: int = 0,
            accumulator: int | None = None,
        ) -> list[int]:
            self.terms.append(max([begin, *terms]) - begin)
            return compute(element, step, sources, terms, begin, accumulator)

        monkeypatch.setattr(CpuElement, "accumulators", noted)


@pytest.mark.parametrize("side", SIDES)
def test_an_honest_party_follows_a_fold_once(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it opens or compares: its passes are the whole fold, and then one part of each level."""
    terms = 1 << 18
    positions = [position for position, _, _ in played(honest_trace(terms), side).record.walk()]
    player, passes = ReplayPlayer(honest_trace(terms)), Passes(monkeypatch)
    levels = [player.open(position) for position in positions if position.level is Level.TERMS]
    assert len(levels) >= 2
    assert passes.terms[0] == terms
    assert sum(passes.terms) <= terms + terms // 64 + terms // 64**2


def test_what_is_known_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = honest_trace(3000)
    node, sources = honest.program.nodes[0], honest.sources(0, 0)
    chain = accumulators(node, 0, 0, sources).tolist()
    passes, known = Passes(monkeypatch), KnownElement(node, 0, 0)

    def ask(*places: int) -> list[int]:
        passes.terms.clear()
        assert known.accumulators(places, sources) == [chain[place] for place in places]
        return passes.terms

    assert ask(0) == []
    assert ask(1000, 2000, 3000) == [3000]
    assert ask(1000, 3000, 0, 1000) == []
    assert ask(2010, 2020) == [20]
    assert ask(2900, 500, 2015) == [500, 5, 880]
    with pytest.raises(ProtocolError, match="ascend"):
        known.accumulators([3001], sources)


@pytest.mark.parametrize("side", SIDES)
def test_the_figure_is_that_of_a_dispute_down_to_one_term(side: Side) -> None:
    match = played(honest_trace(1 << 15), side)
    moves = [move for position, move, _ in match.record.walk() if position.level is Level.TERMS]
    assert len(moves) >= 2
    assert match.last.level is Level.TERMS
    assert match.last.boundaries == list(range(match.last.lo, match.last.hi + 1)), "one term a part"


STEPS = 40


class CountingExecutor(CpuExecutor):
    """Counts the steps that it watches."""

    steps = 0

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        self.steps += 1
        return super().watch(state, step, seen)

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        raise AssertionError("all outputs of a step at once")


def trace(kept_bytes: int = KEPT_BYTES) -> tuple[SegmentTrace, CountingExecutor]:
    program, constants = toy_program.build(), toy_program.constants()
    executor = CountingExecutor(program, constants)
    return SegmentTrace(program, constants, executor, toy_program.initial_state(), 3, STEPS, kept_bytes), executor


def states(kept: int) -> tuple[SegmentStates, list[int], list[list[Words]]]:
    """The states of a segment of which so many may be kept, the steps that were executed, and what the states are."""
    program, constants = toy_program.build(), toy_program.constants()
    executor, executed = CpuExecutor(program, constants), list[int]()

    def advance(state: Sequence[Words], step: int) -> list[Words]:
        executed.append(step)
        return executor.advance(state, step)[0]

    right = [toy_program.initial_state()]
    for step in range(3, 3 + STEPS):
        right.append(next_state(program, executor.run(right[-1], step)))
    size = 4 * sum(slot.type.numel for slot in program.slots)
    return SegmentStates(program, advance, right[0], 3, STEPS, kept * size), executed, right


@pytest.mark.parametrize("kept", [0, 1, 2, 7, 100])
def test_states_that_are_not_kept_are_computed_again(kept: int) -> None:
    found, executed, right = states(kept)
    in_memory = 0
    for step in Random(1).sample(range(STEPS + 1), STEPS + 1):
        assert all(map(np.array_equal, found.state(3 + step), right[step]))
        in_memory = max(in_memory, len(found._kept))
    assert in_memory <= kept + 2  # the first, and the last of the segment
    if kept >= STEPS:
        assert sorted(executed) == list(range(3, 3 + STEPS))  # each once


def test_each_root_is_computed_once_on_one_way() -> None:
    """The levels over the steps of a segment take one execution of it, whatever is kept."""
    found, executed, right = states(0)
    last = found.root(3 + STEPS)
    assert executed == list(range(3, 3 + STEPS))
    roots = [found.root(3 + step) for step in range(STEPS + 1)]
    assert len(executed) == STEPS
    assert roots[-1] == last
    assert len(set(roots)) == STEPS + 1
    held = found.hold(3 + 17)
    executed.clear()
    assert all(map(np.array_equal, found.state(3 + 18), right[18]))
    assert found.state(3 + 17) is held
    assert executed == [3 + 17]


def test_a_dispute_replays_its_segment_once_and_the_disputed_step_a_few_times() -> None:
    """Though no state is kept but the first one, and no output but those that the disputed node reads."""
    drawing, _ = trace()
    lie = draw_lie(drawing, range(len(drawing.program.nodes)), Random(3))
    honest, executor = trace(0)
    claim, header, asserter, challenger = sides(honest, LyingTrace(drawing, lie), Side.ASSERTER)
    executor.steps = 0
    assert play(claim, header, asserter, challenger).winner is Side.CHALLENGER
    # Once to its end, once more to the disputed step, and that step for its row, the state after it and the node.
    assert executor.steps <= STEPS + (lie.step - 3) + 4
    at, held = honest._outputs
    assert at == lie.step
    assert set(held) == read_with(honest.program, lie.node)


def test_executions_are_dropped_by_their_size() -> None:
    made: list[int] = []

    def execute(number: int) -> SegmentTrace:
        made.append(number)
        return trace()[0]

    kept = KeptTraces[int](2 * trace()[0].most_bytes)
    for number in (1, 2, 1, 3, 1, 2):
        kept.get(number, partial(execute, number))
    assert made == [1, 2, 3, 2]
    kept.forget(lambda key: key == 2)
    kept.get(1, lambda: execute(1))
    kept.get(2, lambda: execute(2))
    assert made == [1, 2, 3, 2, 2]


def test_an_execution_that_is_dropped_is_freed_at_once() -> None:
    found, _ = trace()
    found.state_root(3 + STEPS)
    found.node_roots(4)
    found.sources(4, 0)
    dropped = weakref.ref(found)
    gc.disable()
    try:
        del found
        assert dropped() is None
    finally:
        gc.enable()


def test_a_segment_without_steps_has_its_start() -> None:
    program, constants = toy_program.build(), toy_program.constants()
    executor = CpuExecutor(program, constants)
    found = SegmentTrace(program, constants, executor, toy_program.initial_state(), 3, 0)
    assert found.state_root(3) == trace()[0].state_root(3)
