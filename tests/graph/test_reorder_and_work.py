"""Re-associated programs: same mathematics, other bits, equal seeds equal bytes; and the work estimate."""

from dataclasses import replace

import numpy as np
import pytest

from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.execution.reference import ReferenceExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.sum_reordering import reorder
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import node_work, step_work

F32 = DType.F32
ROWS, TERMS, COLUMNS = 3, 23, 2


def product(operation: Op = Op.FFMA, **changes: object) -> Node:
    """A matrix product, or a sum of sums, of state 0 and state 1."""
    builder = Builder(3)
    if operation is Op.FFMA:
        body = builder.build(builder.emit(Op.FFMA, 1, 2, 0))
    else:
        body = builder.build(builder.emit(operation, 0, builder.emit(Op.FMUL, 1, 2)))
    left, right = TensorType(F32, (ROWS, TERMS)), TensorType(F32, (TERMS, COLUMNS))
    node = Node(
        TensorType(F32, (ROWS, COLUMNS)),
        (
            Operand(Source.STATE, 0, left, Affine(0, (0, TERMS, 0, 1))),
            Operand(Source.STATE, 1, right, Affine(0, (0, 0, 1, COLUMNS))),
        ),
        (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)),
        body,
        fold=(TERMS,),
    )
    return replace(node, **changes)  # type: ignore[arg-type]  # the tests name fields of Node


def short() -> Node:
    """A fold over two dimensions with too few terms to cut."""
    operands = tuple(replace(operand, address=Affine(0, (0, 0, 0, 1, 1))) for operand in product().operands)
    return product(fold=(1, 2), operands=operands)


def copy_of(source: Source, index: int, type_: TensorType) -> Node:
    builder = Builder(1)
    operand = Operand(source, index, type_, Affine(0, (0, *type_.strides)))
    return Node(type_, (operand,), (Input(InputKind.OPERAND, 0),), builder.build(builder.emit(Op.MOV, 0)))


def program(node: Node) -> StepProgram:
    """The node, its copy (which must follow it), and state that stays."""
    left, right = TensorType(F32, (ROWS, TERMS)), TensorType(F32, (TERMS, COLUMNS))
    nodes = (node, copy_of(Source.NODE, 0, node.type), copy_of(Source.STATE, 0, left), copy_of(Source.STATE, 1, right))
    slots = (
        Slot(Component.PARAMETER, left, 2),
        Slot(Component.PARAMETER, right, 3),
        Slot(Component.OPTIMIZER, node.type, 1),
    )
    result = StepProgram(slots, (TensorType(F32, ()),), nodes)
    result.validate()
    return result


def state(node: Node) -> list[Words]:
    random = np.random.default_rng(3)
    shapes = [(ROWS, TERMS), (TERMS, COLUMNS), node.type.shape]
    return [random.standard_normal(shape).astype(np.float32).view(np.uint32) for shape in shapes]


def outcome(step: StepProgram, words: list[Words]) -> np.ndarray:
    outputs = ReferenceExecutor(step, [np.zeros((), np.uint32)]).run(words, 0)
    return outputs[step.slots[2].producer].view(np.float32)


def test_seeds_give_other_structures_of_the_same_sum() -> None:
    original = program(product())
    words = state(original.nodes[0])
    exact = words[0].view(np.float32).astype(np.float64) @ words[1].view(np.float32).astype(np.float64)
    structures, results = set(), set()
    for seed in range(40):
        changed = reorder(original, seed)
        assert changed.to_bytes() == reorder(original, seed).to_bytes()
        assert StepProgram.from_bytes(changed.to_bytes()) == changed
        assert changed.constants == original.constants
        assert [(slot.component, slot.type) for slot in changed.slots] == [
            (slot.component, slot.type) for slot in original.slots
        ]
        result = outcome(changed, words)
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
        structures.add(changed.to_bytes())
        results.add(result.tobytes())
    assert len(structures) > 15
    assert len(results) > 4


def test_a_fold_with_a_product_inside_is_cut_only_evenly() -> None:
    even = product(Op.FADD)
    assert len(reorder(program(even), 0).nodes) == len(program(even).nodes)  # 23 terms: no even cut exists
    operands = (
        Operand(Source.STATE, 0, even.operands[0].type, Affine(0, (0, TERMS, 0, 1))),
        Operand(Source.STATE, 1, even.operands[1].type, Affine(0, (0, 0, 1, COLUMNS))),
    )
    shorter = program(replace(even, fold=(20,), operands=operands))
    for seed in range(10):
        changed = reorder(shorter, seed)
        assert changed.nodes[0].type.shape == (20 // changed.nodes[0].terms, ROWS, COLUMNS)  # partial sums come first
        words = state(shorter.nodes[0])
        np.testing.assert_allclose(outcome(changed, words), outcome(shorter, words), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "node",
    [
        product(Op.FMAX),
        product(Op.FSUB),
        product(init=0x3F800000),
        product(fold=(3,)),
        product(
            fold=(1, 1), operands=tuple(replace(o, address=Affine(0, (0, 0, 0, 1, 1))) for o in product().operands)
        ),
    ],
)
def test_what_is_no_plain_sum_stays(node: Node) -> None:
    assert reorder(program(node), 5) == program(node)


def test_two_fold_dimensions_are_cut_along_the_longer() -> None:
    builder = Builder(2)
    wide = TensorType(F32, (ROWS, TERMS))
    node = Node(
        TensorType(F32, ()),
        (Operand(Source.STATE, 0, wide, Affine(0, (0, TERMS, 1))),),
        (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0)),
        builder.build(builder.emit(Op.FADD, 0, 1)),
        fold=(ROWS, TERMS),
    )
    original = program(node)
    words = state(node)
    for seed in range(12):
        changed = reorder(original, seed)
        assert changed.nodes[0].fold[0] == ROWS
        np.testing.assert_allclose(outcome(changed, words), words[0].view(np.float32).sum(), rtol=1e-5)


def test_a_sum_that_looks_at_its_position_stays() -> None:
    builder = Builder(3)
    weighed = builder.emit(Op.FMUL, 1, builder.emit(Op.I2F, 2))
    node = product(
        body=builder.build(builder.emit(Op.FADD, 0, weighed)),
        inputs=(Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.COORDINATE, 3)),
        fold=(20,),
    )
    assert reorder(program(node), 1) == program(node)
    outer = replace(node, inputs=(*node.inputs[:2], Input(InputKind.COORDINATE, 2)))
    words = state(outer)
    changed = reorder(program(outer), 1)
    assert changed != program(outer)
    np.testing.assert_allclose(outcome(changed, words), outcome(program(outer), words), rtol=1e-5, atol=1e-6)


def test_work_counts_primitives_and_reads() -> None:
    assert node_work(product()) == ROWS * COLUMNS * TERMS * (2 + 2)
    assert node_work(product(Op.FADD)) == ROWS * COLUMNS * TERMS * (1 + 1 + 2)
    assert node_work(copy_of(Source.STATE, 0, TensorType(F32, (5,)))) == 5 * 2
    whole = program(product())
    assert step_work(whole) == sum(node_work(node) for node in whole.nodes)
