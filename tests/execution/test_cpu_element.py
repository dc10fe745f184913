"""The kernels follow one element term by term with the bits of its definition in NumPy, whatever the fold."""

from random import Random

import numpy as np
import pytest
from test_cpu_row_groups import words

import chosen_rows
import instruction_sets
from lab.kernels.drawn_forms import PRODUCTS, SUMS, DescriptorDraw, FormDraw
from lab.kernels.hostile_nodes import STEPS, Hostile
from lab.kernels.operation_nodes import convolution, matmul, table_gradient
from pol.arithmetic.functions import exp
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Builder, Instruction, ScalarProgram
from pol.errors import ProtocolError
from pol.execution import _kernels
from pol.execution.cpu import CpuElement
from pol.execution.disputed_element import accumulators, body_values
from pol.execution.operand_sources import Sources
from pol.execution.reference import ReferenceExecutor
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

F32 = DType.F32
ACCUMULATOR, X, Y = Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)


def check(node: Node, sources: Sources, step: int, random: Random, elements: int = 2) -> None:
    """All accumulators at once, some of them from a drawn place on, and one term's results, in each instruction set."""
    for number in {random.randrange(node.type.numel) for _ in range(elements)}:
        chain = accumulators(node, step, number, sources).tolist()
        term = random.randrange(node.terms)
        results = body_values(node, step, number, term, chain[term], sources)
        begin = random.randrange(node.terms + 1)
        some = sorted(random.randrange(begin, node.terms + 1) for _ in range(random.randrange(5)))
        for isa in instruction_sets.each():
            element, where = CpuElement(node, number), f"{isa}, element {number}: {node}"
            assert element.accumulators(step, sources, range(node.terms + 1)) == chain, where
            assert element.accumulators(step, sources, some, begin, chain[begin]) == [chain[t] for t in some], where
            assert element.results(step, sources, term, chain[term]) == results, where


@pytest.mark.parametrize("group", chosen_rows.first(range(8), 3, others=pytest.mark.slow))
def test_drawn_without_a_plan(group: int) -> None:
    for seed in range(group, 200, 8):
        draw = DescriptorDraw(seed)
        node = draw.node()
        check(
            node,
            Sources([], [draw.tensor(o.type) for o in node.operands], []),
            draw.random.choice([0, 1, 3]),
            draw.random,
        )


@pytest.mark.parametrize("kind", ["product", "sum", "map"])
@pytest.mark.parametrize("group", chosen_rows.first(range(4), 2, others=pytest.mark.slow))
def test_drawn_in_the_forms_of_kernels(kind: str, group: int) -> None:
    for seed in range(group, 120, 4):
        draw = FormDraw(seed)
        drawn = draw.drawn(kind)
        check(drawn.node, Sources([], drawn.tensors, []), 3, draw.random)


@pytest.mark.parametrize("group", chosen_rows.first(range(8), 3, others=pytest.mark.slow))
def test_drawn_by_strangers(group: int) -> None:
    for seed in range(group, 160, 8):
        draw = Hostile(seed)
        program, state, constants = draw.program()
        step = draw.random.choice(STEPS)
        outputs = ReferenceExecutor(program, constants).run(state, step)
        for number, node in enumerate(program.nodes):
            check(node, Sources(state, constants, outputs[:number]), step, draw.random)


def numbers(seed: int, node: Node, special: float = 0.0) -> Sources:
    return Sources([], [words(o.type.shape, seed + i, special) for i, o in enumerate(node.operands)], [])


@pytest.mark.parametrize("order", ["plain", "ignored", "inverted", "other"])
@pytest.mark.parametrize("fold", [(1,), (40,), (30, 25)])
def test_terms_that_only_a_key_selects(order: str, fold: tuple[int, ...]) -> None:
    draw = DescriptorDraw(len(fold))
    node = table_gradient(draw, 4, 3, fold, order)
    keys = draw.numbers.integers(-2, 6, node.operands[0].type.shape).astype(np.int32).view(np.uint32)
    parts = draw.numbers.standard_normal(node.operands[1].type.shape).astype(np.float32).view(np.uint32)
    check(node, Sources([], [keys, parts], []), 0, draw.random, 12)


@pytest.mark.parametrize(("left", "right"), [("bmk", "bkn"), ("bmk", "bnk"), ("kbm", "kn"), ("mk", "nkb")])
def test_products_and_convolutions(left: str, right: str) -> None:
    for node in (matmul(2, 5, 7, 700, left, right, 0x3F800000), convolution(1), convolution(2)):
        check(node, numbers(len(left + right), node, 0.001), 0, Random(1), 6)


def test_a_row_in_lanes() -> None:
    tail = (Bound(Affine(0, (0, 1, 0, 32)), 1000),)
    x = Operand(Source.CONSTANT, 0, TensorType(F32, (3, 1000)), Affine(0, (0, 1, 1000, 32)), 0, tail)
    y = Operand(Source.CONSTANT, 1, TensorType(F32, (1000,)), Affine(0, (0, 1, 0, 32)), 0, tail)
    for body in (*PRODUCTS, *SUMS):
        node = Node(TensorType(F32, (32, 3)), (x, y), (ACCUMULATOR, X, Y), body, (32,))
        check(node, numbers(7, node, 0.01), 0, Random(2), 4)


def long_fold(
    body: ScalarProgram, init: int = 0, terms: int = 2000, inputs: tuple[Input, ...] = (ACCUMULATOR, X, Y)
) -> Node:
    """Some blocks of terms; the second operand is read from its end."""
    vector = TensorType(F32, (terms,))
    x = Operand(Source.CONSTANT, 0, vector, Affine(0, (0, 1)))
    y = Operand(Source.CONSTANT, 1, vector, Affine(terms - 1, (0, -1)))
    return Node(TensorType(F32, ()), (x, y), inputs, body, (terms,), init)


@pytest.mark.parametrize(("op", "place"), [(op, place) for op in Op for place in range(ARITY[op])])
def test_every_primitive_joins_terms(op: Op, place: int) -> None:
    """The accumulator in each of its operands, with words of all kinds: NaNs, infinities, numbers that saturate."""
    operands = [1, 2, 1][: ARITY[op]]
    operands[place] = 0
    alone = ScalarProgram(3, (), (Instruction(op, *operands),))
    operands[place] = 3
    after = ScalarProgram(3, (), (Instruction(Op.XOR, 0, 1), Instruction(op, *operands), Instruction(Op.ADD, 4, 2)))
    for special, init in ((0.0, 0), (0.003, 0x7FC12345), (0.5, 0xFF800001)):
        for body in (alone, after):
            node = long_fold(body, init, 1200)
            check(node, numbers(op, node, special), 0, Random(op), 1)


def test_nans_keep_out_of_sight() -> None:
    """Between float primitives a NaN may have any bits; integers see the canonical one."""
    instructions = (
        Instruction(Op.FMUL, 0, 1),
        Instruction(Op.FADD, 3, 2),
        Instruction(Op.FABS, 4),
        Instruction(Op.SELECT, 1, 5, 0),
        Instruction(Op.XOR, 6, 4),
    )
    node = long_fold(ScalarProgram(3, (), instructions), 0xFFC00001)
    check(node, numbers(3, node, 0.2), 0, Random(3), 1)


def test_functions_of_the_accumulator_and_of_terms() -> None:
    builder = Builder(3)
    ahead = builder.call(exp.program, builder.emit(Op.FNEG, builder.emit(Op.FABS, 1)))
    behind = builder.call(exp.program, builder.emit(Op.FMIN, builder.emit(Op.FMUL, 0, 2), 1))
    node = long_fold(builder.build(builder.emit(Op.FFMA, ahead, behind, 2)))
    check(node, numbers(4, node, 0.01), 0, Random(4), 1)


def test_a_body_that_ignores_the_accumulator() -> None:
    node = long_fold(ScalarProgram(3, (), (Instruction(Op.FMUL, 1, 2),)), 5)
    check(node, numbers(5, node), 0, Random(5), 1)


def test_gathers_coordinates_and_the_step() -> None:
    terms = (6, 5, 40)
    index = Operand(Source.CONSTANT, 0, TensorType(DType.I32, (1200,)), Affine(-4, (1, 0, 0, 200, 40, 1)))
    table = Operand(
        Source.CONSTANT, 1, TensorType(F32, (9, 7)), Affine(0, (0, 0, 1, 0, 0, 0)), 0x7FC00000, gather=Gather(0, 7, 9)
    )
    inputs = (ACCUMULATOR, Y, *(Input(InputKind.COORDINATE, i) for i in range(6)))
    builder = Builder(len(inputs))
    place = 2
    for i in range(3, 8):
        place = builder.emit(Op.ADD, builder.emit(Op.MUL, place, builder.const(31)), i)
    node = Node(
        TensorType(F32, (3, 7)),
        (index, table),
        inputs,
        builder.build(builder.emit(Op.FFMA, builder.emit(Op.I2F, place), 1, 0)),
        terms,
        0x3F800000,
    )
    random = np.random.default_rng(6)
    rows = random.integers(-1, 10, 1200).astype(np.int32).view(np.uint32)
    values: Words = random.standard_normal((9, 7)).astype(np.float32).view(np.uint32)
    for step in (0, 4, 2**32 - 1):
        check(node, Sources([], [rows, values], []), step, Random(step), 4)


def test_elements_and_terms_that_do_not_exist_are_refused() -> None:
    node = long_fold(SUMS[0], terms=10)
    sources = numbers(8, node)
    for number in (-1, 1):
        with pytest.raises(ProtocolError, match="element"):
            CpuElement(node, number)
    element = CpuElement(node, 0)
    for terms, begin in (([3, 2], 0), ([11], 0), ([3], 4), ([-1], 0), ([], 11), ([3], -1)):
        with pytest.raises(ProtocolError, match="ascend"):
            element.accumulators(0, sources, terms, begin)
    for term in (-1, 10):
        with pytest.raises(ProtocolError, match="term"):
            element.results(0, sources, term, 0)
    with pytest.raises(ProtocolError, match="missing"):
        element.accumulators(0, Sources([], [], []), [1])
    with pytest.raises(ProtocolError, match="step"):
        element.accumulators(2**32, sources, [1])
    assert element.accumulators(0, sources, []) == []


def test_the_kernels_refuse_it_too() -> None:
    node = long_fold(SUMS[0], terms=10)
    x, out = np.zeros(10, np.uint32), np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match="element"):
        _kernels.Element(node.encode(), 1)
    element = _kernels.Element(node.encode(), 0)
    for operands, begin, ends in (
        ([x, x], -1, [1]),
        ([x, x], 2, [1]),
        ([x, x], 0, [11]),
        ([x, x], 0, [1, 2]),
        ([x], 0, [1]),
    ):
        with pytest.raises(ValueError, match=r"needed|exist|first"):
            element.accumulators(0, operands, begin, 0, ends, out)
    with pytest.raises(ValueError, match="term"):
        element.results(0, [x, x], 10, 0, out)
    with pytest.raises(ValueError, match="instruction"):
        element.results(0, [x, x], 0, 0, np.zeros(2, np.uint32))
