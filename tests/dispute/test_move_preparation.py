"""What it takes to prepare the moves about a long fold: one pass of the kernels, however long the fold is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType

import numpy as np
import pytest

from lab.benchmarks import move_preparation
from lab.disputes.dispute_match import Match
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.known_element import KnownElement
from pol.dispute.position import Level, Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuElement, CpuExecutor
from pol.execution.disputed_element import accumulators
from pol.execution.operand_sources import Sources

SIDES = [Side.ASSERTER, Side.CHALLENGER]


def honest_trace(terms: int) -> SegmentTrace:
    program, constants = move_preparation.program(terms), move_preparation.constants(terms)
    return SegmentTrace(program, constants, CpuExecutor(program, constants), [np.zeros((), np.uint32)], 0, 1)


def played(honest: SegmentTrace, side: Side) -> Match:
    """A dispute from the fold's first boundaries down to one term, which the honest party wins."""
    match, _ = move_preparation.disputed(honest, side)
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
    honest = honest_trace(terms)
    player, passes = ReplayPlayer(honest), Passes(monkeypatch)
    levels = [player.open(position) for position in positions if position.level is Level.TERMS]
    assert len(levels) >= 2
    assert passes.terms[0] == terms
    assert sum(passes.terms) <= terms + terms // 64 + terms // 64**2


def test_what_is_known_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = 3000
    honest = honest_trace(terms)
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
