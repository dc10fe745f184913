"""Nodes of the classes that have kernels of their own on a GPU: contractions and keyed folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.kernels.drawn_descriptors import DescriptorDraw
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType


def contraction(batch: int, rows: int, columns: int, terms: int, order: Sequence[str], integers: bool) -> Node:
    """out[b, m, n] = the fold over k of x[b, m, k] y[b, k, n], dimensions of x and y stored in any order."""
    sizes = {"b": batch, "m": rows, "n": columns, "k": terms}

    def operand(index: int, layout: str) -> Operand:
        strides, stride = dict.fromkeys("bmnk", 0), 1
        for name in reversed(layout):
            strides[name] = stride
            stride *= sizes[name]
        type_ = TensorType(DType.F32, tuple(sizes[name] for name in layout))
        return Operand(Source.CONSTANT, index, type_, Affine(0, (0, *(strides[name] for name in "bmnk"))))

    body = (Instruction(Op.MUL, 1, 2), Instruction(Op.ADD, 0, 3)) if integers else (Instruction(Op.FFMA, 1, 2, 0),)
    inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
    operands = (operand(0, order[0]), operand(1, order[1]))
    shape = TensorType(DType.F32, (batch, rows, columns))
    return Node(shape, operands, inputs, ScalarProgram(3, (), body), (terms,), 0x80000000)


def table_gradient(seed: int) -> tuple[Node, list[Words]]:
    """out[r, d] = the sum, in order, of the gradients whose key is r; keys may lie out of range."""
    draw = DescriptorDraw(seed)
    rows, width, terms = draw.random.choice([3, 40]), draw.random.choice([1, 5]), draw.random.choice([64, 300])
    key = Operand(Source.CONSTANT, 0, TensorType(DType.I32, (terms,)), Affine(0, (0, 0, 0, 1)))
    gradient = Operand(Source.CONSTANT, 1, TensorType(DType.F32, (terms, width)), Affine(0, (0, 0, 1, width)))
    inputs = (
        Input(InputKind.ACCUMULATOR),
        Input(InputKind.OPERAND, 0),
        Input(InputKind.OPERAND, 1),
        Input(InputKind.COORDINATE, 1),
    )
    body = (Instruction(Op.EQ, 1, 3), Instruction(Op.FADD, 0, 2), Instruction(Op.SELECT, 4, 5, 0))
    shape = TensorType(DType.F32, (rows, width))
    node = Node(shape, (key, gradient), inputs, ScalarProgram(4, (), body), (terms,), 0)
    keys = draw.numbers.integers(-2, rows + 2, terms).astype(np.int32).view(np.uint32)
    return node, [keys, draw.tensor(gradient.type)]
