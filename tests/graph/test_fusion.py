"""Maps joined into their only reader: the same bits from fewer nodes, and everything that must stop a join."""

from dataclasses import replace

import numpy as np
import pytest

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.lowering.fusion import MOST_INSTRUCTIONS, fuse
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.node_names import NodeName
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType, row_major

F32, I32 = DType.F32, DType.I32
SHAPE = (4, 6)
STATE = TensorType(F32, SHAPE)
HOSTILE = [
    0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345, 0x3F800000, 0xBF800000,
    0x7F7FFFFF,
]  # fmt: skip


def read(source: Source, index: int, shape: tuple[int, ...] = SHAPE, dtype: DType = F32) -> Operand:
    return Operand(source, index, TensorType(dtype, shape), Affine(0, (0, *row_major(shape))))


def unary(operand: Operand, op: Op = Op.FSQRT, shape: tuple[int, ...] = SHAPE, length: int = 1) -> Node:
    builder = Builder(1)
    value = 0
    for _ in range(length):
        value = builder.emit(op, value)
    return Node(TensorType(F32, shape), (operand,), (Input(InputKind.OPERAND, 0),), builder.build(value))


def binary(first: Operand, second: Operand, op: Op = Op.FADD, shape: tuple[int, ...] = SHAPE) -> Node:
    builder = Builder(2)
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
    return Node(TensorType(F32, shape), (first, second), inputs, builder.build(builder.emit(op, 0, 1)))


def joined(nodes: list[Node], kept: set[int] | None = None) -> tuple[list[Node], set[int]]:
    names = [NodeName(f"node.{i}", f"line {i}", f"operation.{i}") for i in range(len(nodes))]
    result, labels, gone = fuse(nodes, names, {len(nodes) - 1} if kept is None else kept)
    assert [label.name for label in labels] == [name.name for name in names]
    return result, gone


def outputs(
    nodes: list[Node], executor: type[CpuExecutor] | type[ReferenceExecutor], state: list[Words]
) -> list[Words]:
    copy = unary(read(Source.STATE, 0), Op.MOV)
    index = replace(copy, type=TensorType(I32, (4,)), operands=(read(Source.STATE, 1, (4,), I32),))
    program = StepProgram(
        (Slot(Component.PARAMETER, STATE, len(nodes)), Slot(Component.BUFFER, index.type, len(nodes) + 1)),
        (STATE,),
        (*nodes, copy, index),
    )
    constant = np.random.default_rng(1).integers(0, 1 << 32, SHAPE, dtype=np.uint32)
    return executor(program, [constant]).run(state, 7)[: len(nodes)]


def same_bits(nodes: list[Node], result: list[Node]) -> None:
    words = np.resize(np.array(HOSTILE, np.uint32), SHAPE)
    state = [words, np.array([2, 0, -1, 9], np.int32).view(np.uint32)]
    expected = outputs(nodes, ReferenceExecutor, state)[-1]
    for executor in (ReferenceExecutor, CpuExecutor):
        np.testing.assert_array_equal(outputs(result, executor, state)[-1], expected)


def test_a_chain_becomes_one_node() -> None:
    nodes = [
        unary(read(Source.STATE, 0)),
        binary(read(Source.NODE, 0), read(Source.CONSTANT, 0), Op.FMUL),
        binary(read(Source.NODE, 1), read(Source.STATE, 0)),
    ]
    result, gone = joined(nodes)
    assert gone == {0, 1}
    assert [step.op for step in result[2].body.instructions] == [Op.FSQRT, Op.FMUL, Op.FADD]
    assert len(result[2].operands) == 2  # state 0 is read once
    same_bits(nodes, result)


def test_a_value_read_twice_by_one_node_is_computed_once() -> None:
    nodes = [unary(read(Source.STATE, 0)), binary(read(Source.NODE, 0), read(Source.NODE, 0), Op.FMUL)]
    result, gone = joined(nodes)
    assert gone == {0}
    assert len(result[1].body.instructions) == 2
    same_bits(nodes, result)


def test_names_keep_the_lines_and_operations_of_all() -> None:
    nodes = [unary(read(Source.STATE, 0)), unary(read(Source.NODE, 0)), unary(read(Source.NODE, 1))]
    _, labels, _ = fuse(nodes, [NodeName(f"n{i}", f"line {i}", f"op.{i}") for i in range(3)], {2})
    assert labels[2] == NodeName("n2", "line 0; line 1; line 2", "op.0 op.1 op.2")


def test_another_shape_of_the_same_elements_is_joined() -> None:
    flat = (24,)
    nodes = [
        binary(read(Source.STATE, 0), replace(read(Source.CONSTANT, 0), address=Affine(5, (0, 6, -1))), Op.FMUL),
        unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 1))), shape=flat),
        unary(replace(read(Source.NODE, 1, flat), address=Affine(0, (0, 12, 4, 1))), shape=(2, 3, 4)),
    ]
    result, gone = joined(nodes)
    assert gone == {1}  # the reversed rows of node 0 have no strides over (24,)
    same_bits(nodes, result)
    nodes[0] = binary(read(Source.STATE, 0), read(Source.CONSTANT, 0), Op.FMUL)
    result, gone = joined(nodes)
    assert gone == {0, 1}
    same_bits(nodes, result)


def test_coordinates_move_with_the_shape() -> None:
    builder = Builder(2)
    body = builder.build(builder.emit(Op.ADD, 0, builder.emit(Op.SHL, 1, builder.const(8))))
    inputs = (Input(InputKind.COORDINATE, 1), Input(InputKind.COORDINATE, 2))
    first = Node(STATE, (), inputs, body)
    tall = (4, 1, 6)
    second = unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 6, 0, 1))), Op.MOV, tall)
    result, gone = joined([first, second])
    assert gone == {0}
    same_bits([first, second], result)
    flat = unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 1))), Op.MOV, (24,))
    assert joined([first, flat])[1] == set()


def test_a_gather_and_bounds_come_along() -> None:
    index = Operand(Source.STATE, 1, TensorType(I32, (4,)), Affine(0, (0, 1, 0)))
    moved = Operand(
        Source.STATE, 0, STATE, Affine(0, (0, 0, 1)), 0x7FC00000, (Bound(Affine(0, (0, 0, 1)), 5),), Gather(0, 6, 4)
    )
    builder = Builder(1)
    rows = Node(STATE, (index, moved), (Input(InputKind.OPERAND, 1),), builder.build(builder.emit(Op.MOV, 0)))
    nodes = [rows, binary(read(Source.CONSTANT, 0), read(Source.NODE, 0))]
    result, gone = joined(nodes)
    assert gone == {0}
    same_bits(nodes, result)


def test_an_index_is_not_joined_into_the_read_that_it_moves() -> None:
    index = replace(unary(read(Source.STATE, 1, (4,), I32), Op.MOV, (4,)), type=TensorType(I32, (4,)))
    by = Operand(Source.NODE, 0, TensorType(I32, (4,)), Affine(0, (0, 1)))
    row = Operand(Source.STATE, 0, STATE, Affine(0, (0, 0)), 0, (), Gather(0, 6, 4))
    builder = Builder(2)
    body = builder.build(builder.emit(Op.ADD, 0, 1))
    rows = Node(TensorType(F32, (4,)), (by, row), (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)), body)
    assert joined([index, rows])[1] == set()


@pytest.mark.parametrize(
    "second",
    [
        unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 1, 4))), shape=(6, 4)),
        unary(replace(read(Source.NODE, 0), address=Affine(1, (0, 6, 1)))),
        unary(replace(read(Source.NODE, 0), address=Affine(0, (1, 6, 1)))),
        unary(replace(read(Source.NODE, 0), bounds=(Bound(Affine(0, (0, 1, 0)), 2),))),
        unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 6, 0)))),
        unary(read(Source.NODE, 0), length=MOST_INSTRUCTIONS),
    ],
    ids=["transposed", "moved", "by step", "bounded", "broadcast", "long"],
)
def test_what_is_not_element_by_element_or_too_long_stays(second: Node) -> None:
    assert joined([unary(read(Source.STATE, 0)), second])[1] == set()


def test_what_others_need_stays() -> None:
    first = unary(read(Source.STATE, 0))
    twice = [first, unary(read(Source.NODE, 0), Op.FABS), binary(read(Source.NODE, 0), read(Source.NODE, 1))]
    assert joined(twice)[1] == {1}
    assert joined(twice, {1, 2})[1] == set()
    fold = replace(
        unary(replace(read(Source.NODE, 0), address=Affine(0, (0, 6, 1)))), fold=(6,), type=TensorType(F32, (4,))
    )
    assert joined([first, fold])[1] == set()
    assert (
        joined(
            [
                replace(fold, operands=(replace(fold.operands[0], source=Source.STATE),)),
                unary(read(Source.NODE, 0, (4,)), shape=(4,)),
            ]
        )[1]
        == set()
    )


def test_many_operands_stay() -> None:
    builder = Builder(8)
    total = 0
    for register in range(1, 8):
        total = builder.emit(Op.FADD, total, register)
    shifted = [replace(read(Source.STATE, 0), address=Affine(base, (0, 0, 0))) for base in range(8)]
    wide = Node(STATE, tuple(shifted), tuple(Input(InputKind.OPERAND, i) for i in range(8)), builder.build(total))
    assert joined([wide, unary(read(Source.NODE, 0))])[1] == {0}
    assert joined([wide, binary(read(Source.NODE, 0), read(Source.STATE, 0))])[1] == set()


def test_functions_are_joined_with_what_surrounds_them() -> None:
    builder = Builder(1)
    exp = Node(
        STATE, (read(Source.STATE, 0),), (Input(InputKind.OPERAND, 0),), builder.build(builder.call(functions.exp(), 0))
    )
    nodes = [exp, binary(read(Source.NODE, 0), read(Source.CONSTANT, 0), Op.FSUB)]
    result, gone = joined(nodes)
    assert gone == {0}
    same_bits(nodes, result)
