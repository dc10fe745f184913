"""Folds and maps drawn in the forms that have kernels of their own give the bits of the reference."""

import numpy as np
import pytest

import instruction_sets
from lab.kernels.drawn_forms import PRODUCTS, Drawn, FormDraw
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType


def check(drawn: Drawn, step: int) -> None:
    """The node as a program of its own, in every instruction set, with one and two threads."""
    node, tensors = drawn.node, drawn.tensors
    program = StepProgram((Slot(Component.BUFFER, node.type, 0),), tuple(o.type for o in node.operands), (node,))
    state = [np.zeros(node.type.shape, np.uint32)]
    (expected,) = ReferenceExecutor(program, tensors).run(state, step)
    for isa in instruction_sets.each():
        for threads in (1, 2):
            (got,) = CpuExecutor(program, tensors, threads).run(state, step)
            np.testing.assert_array_equal(got, expected, err_msg=f"{isa}, {threads} threads: {node}")


GROUP = 20


@pytest.mark.parametrize("kind", ["product", "sum", "map"])
@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.slow if g >= 8 else ()) for g in range(20)])
def test_drawn(kind: str, group: int) -> None:
    for seed in range(group * GROUP, (group + 1) * GROUP):
        check(FormDraw(seed).drawn(kind), 3)


@pytest.mark.parametrize("group", range(4))
def test_drawn_scans(group: int) -> None:
    for seed in range(group * 40, (group + 1) * 40):
        check(FormDraw(seed).scan(), 3)


@pytest.mark.parametrize("rows", [1, 5, 8, 21])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 70, 128])
def test_product_of_rows_with_a_row_in_lanes(rows: int, count: int) -> None:
    """Sums of x * w along rows in 32 lanes: one form of lane and round cuts the tails of both, and w has no rows."""
    tail = (Bound(Affine(0, (0, 1, 0, 32)), count),)
    x_type, w_type = TensorType(DType.F32, (rows, count)), TensorType(DType.F32, (count,))
    x = Operand(Source.CONSTANT, 0, x_type, Affine(0, (0, 1, count, 32)), 0, tail)
    w = Operand(Source.CONSTANT, 1, w_type, Affine(0, (0, 1, 0, 32)), 0, tail)
    inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
    draw = FormDraw(rows + count)
    tensors = [draw.tensor(rows * count).reshape(rows, count), draw.tensor(count)]
    for body in PRODUCTS:
        check(Drawn(Node(TensorType(DType.F32, (32, rows)), (x, w), inputs, body, (-(-count // 32),)), tensors), 0)
