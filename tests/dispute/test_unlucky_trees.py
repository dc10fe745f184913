"""Trees that are unlucky on purpose: zeros, equal leaves, duplicate subtrees, words of ones."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

import toy_program
from dispute_harness import Court, court, sides
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

WIDE = TensorType(DType.I32, (4096 + 3,))
FILLS = {"zeros": 0, "ones": 0xFFFFFFFF, "one leaf over and over": None, "NaN": 0x7FC00000, "minus zero": 0x80000000}


@pytest.fixture(scope="module", params=[4, 5])
def a_court(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def passing(nodes: int) -> StepProgram:
    """Nodes that all yield the same tensor, the state: every root in the trace is equal, and every state."""
    builder = Builder(1)
    body = builder.build(builder.emit(Op.MOV, builder.input(0)))
    whole = Operand(Source.STATE, 0, WIDE, Affine(0, (0, 1)))
    node = Node(WIDE, (whole,), (Input(InputKind.OPERAND, 0),), body)
    slots = tuple(Slot(Component.BUFFER, WIDE, producer) for producer in (nodes - 1, 0, nodes - 1))
    return StepProgram(slots, (WIDE,), (node,) * nodes)


def filled(fill: int | None) -> Words:
    """A tensor of one word, or of one leaf repeated; its last leaf holds three words."""
    if fill is None:
        return np.resize(np.arange(64, dtype=np.uint32), WIDE.numel)
    return np.full(WIDE.numel, fill, np.uint32)


@pytest.mark.parametrize("name", FILLS)
def test_the_truth_wins_where_all_subtrees_are_equal(a_court: Court, name: str) -> None:
    random, words = Random(name), filled(FILLS[name])
    for nodes in (1, 2, 17, 33):
        program, constants, state = passing(nodes), [words], [words] * 3
        executor = CpuExecutor(program, constants, threads=1)
        honest = SegmentTrace(program, constants, executor, state, 0, random.choice([1, 2, 17, 40]))
        for element in (0, 63, 64, 4095, 4096, 4098):
            step, end = honest.steps - 1 - random.randrange(2) * (honest.steps - 1), honest.steps
            liar = LyingTrace(honest, Lie(step, random.choice([0, nodes - 1]), element, 0, 0, random.randrange(32)))
            if liar.state_root(end) == honest.state_root(end):
                continue
            side = random.choice([Side.ASSERTER, Side.CHALLENGER])
            match = a_court.hear(*sides(honest, liar, side))
            assert match.winner is side.other, match.detail


@pytest.mark.parametrize("fill", [0, 0xFFFFFFFF])
def test_the_truth_wins_from_a_state_without_any_difference(a_court: Court, fill: int) -> None:
    random, program = Random(fill), toy_program.build()
    constants = [np.full_like(words, 0) for words in toy_program.constants()]
    state = [np.full_like(words, fill) for words in toy_program.initial_state()]
    honest = SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), state, 3, 20)
    for node in (0, 3, 4, 5, 6):
        found = program.nodes[node]
        lie = Lie(9, node, random.randrange(found.type.numel), found.terms - 1, 0, 30)
        liar = LyingTrace(honest, lie)
        if liar.state_root(23) == honest.state_root(23):
            continue
        for side in (Side.ASSERTER, Side.CHALLENGER):
            match = a_court.hear(*sides(honest, liar, side))
            assert match.winner is side.other, match.detail
