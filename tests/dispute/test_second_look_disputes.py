"""A false rerun of a second look is convicted on an EVM like any other execution, on either side."""

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
from adversaries import Other, TamperedTrace

from dispute_harness import Court, court, dearest_lie, sides
from lab.benchmarks.training_bits import MODELS
from pol.demo.lying_players import LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Source
from pol.graph.state_perturbation import perturb
from pol.graph.sum_reordering import reorder
from pol.verification.verdict.second_look import look_program

STEPS = 2


@pytest.fixture(scope="module")
def a_court() -> Iterator[Court]:
    with court(bits=5) as found:
        yield found


@cache
def honest() -> SegmentTrace:
    """Rerun 1 of a segment that doesn't begin at step 0."""
    captured = MODELS["mlp"](8)
    program = look_program(captured.program, 1)
    executor = CpuExecutor(program, captured.constants, threads=1)
    return SegmentTrace(program, captured.constants, executor, captured.state, 3, STEPS)


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
@pytest.mark.parametrize("what", ["the draw", "the moved number"])
def test_a_lie_in_the_noise_is_convicted(a_court: Court, what: str, side: Side) -> None:
    program = honest().program
    draws = [number for number, node in enumerate(program.nodes) if not node.operands and not node.fold]
    moved = next(
        number
        for number, node in enumerate(program.nodes)
        if any((operand.source, operand.index) == (Source.NODE, draws[0]) for operand in node.operands)
    )
    lie = dearest_lie(honest(), draws[0] if what == "the draw" else moved, Random(f"{what} {side}"))
    match = a_court.hear(*sides(honest(), LyingTrace(honest(), lie), side))
    assert match.winner is side.other
    assert match.refuted or side is Side.CHALLENGER  # a challenger that can't prove anything gives up


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_a_rerun_of_another_index_is_convicted(a_court: Court, side: Side) -> None:
    """The same sums, moved by another seed."""
    captured = MODELS["mlp"](8)
    other = reorder(perturb(captured.program, 2), 1)
    assert len(other.nodes) == len(honest().program.nodes)
    liar = TamperedTrace(honest(), 4, Other("seed", other, captured.constants, 4))
    match = a_court.hear(*sides(honest(), liar, side))
    assert match.winner is side.other
