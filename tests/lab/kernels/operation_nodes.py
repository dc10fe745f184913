"""Nodes as operations have them: matrix products, convolutions, gradients of table lookups."""

from collections.abc import Sequence

import numpy as np

from lab.kernels.drawn_forms import DescriptorDraw
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

F32, I32 = DType.F32, DType.I32
ACCUMULATE = Input(InputKind.ACCUMULATOR)
FFMA = ScalarProgram(3, (), (Instruction(Op.FFMA, 0, 1, 2),))


def matmul(batch: int, rows: int, columns: int, terms: int, left: str, right: str, init: int = 0) -> Node:
    """out[b, m, n] = fold over k of FFMA(x[b, m, k], y[b, k, n]); a layout names the order of the stored dimensions."""
    sizes = {"b": batch, "m": rows, "n": columns, "k": terms}

    def operand(index: int, layout: str) -> Operand:
        strides = dict.fromkeys("bmnk", 0)
        stride = 1
        for name in reversed(layout):
            strides[name] = stride
            stride *= sizes[name]
        type_ = TensorType(F32, tuple(sizes[name] for name in layout))
        return Operand(Source.CONSTANT, index, type_, Affine(0, (0, *(strides[name] for name in "bmnk"))))

    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), ACCUMULATE)
    type_ = TensorType(F32, (batch, rows, columns))
    return Node(type_, (operand(0, left), operand(1, right)), inputs, FFMA, (terms,), init)


def convolution(stride: int) -> Node:
    """3x3 with padding 1: x[2, 5, 9, 8], w[7, 5, 3, 3]; what lies outside reads as -0 so that it would show."""
    batch, channels, height, width, outputs = 2, 5, 9, 8, 7
    out = (batch, outputs, -(-height // stride), -(-width // stride))
    x = Operand(
        Source.CONSTANT,
        0,
        TensorType(F32, (batch, channels, height, width)),
        Affine(-width - 1, (0, channels * height * width, 0, stride * width, stride, height * width, width, 1)),
        0x80000000,
        (
            Bound(Affine(-1, (0, 0, 0, stride, 0, 0, 1, 0)), height),
            Bound(Affine(-1, (0, 0, 0, 0, stride, 0, 0, 1)), width),
        ),
    )
    w_type = TensorType(F32, (outputs, channels, 3, 3))
    w = Operand(Source.CONSTANT, 1, w_type, Affine(0, (0, 0, channels * 9, 0, 0, 9, 3, 1)))
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), ACCUMULATE)
    return Node(TensorType(F32, out), (x, w), inputs, FFMA, (channels, 3, 3), 0x80000000)


def table_gradient(draw: DescriptorDraw, rows: int, width: int, fold: tuple[int, ...], order: str) -> Node:
    """out[r, d] = sum over terms with key == r of the gradient, ascending; keys are bounded and filled at the edge."""
    terms = int(np.prod(fold))
    steps = (fold[1], 1) if len(fold) == 2 else (1,)
    key_type = TensorType(I32, (terms,))
    bounds = (Bound(Affine(-1, (0, 0, 0, *steps)), terms),)
    key = Operand(Source.CONSTANT, 0, key_type, Affine(0, (0, 0, 0, *steps)), rows - 1, bounds)
    part_type = TensorType(F32, (terms, width))
    part = Operand(Source.CONSTANT, 1, part_type, Affine(0, (0, 0, 1, *(width * s for s in steps))))
    inputs = (Input(InputKind.COORDINATE, 1), Input(InputKind.OPERAND, 0), ACCUMULATE, Input(InputKind.OPERAND, 1))
    match order:
        case "plain":
            instructions = [Instruction(Op.EQ, 1, 0), Instruction(Op.FADD, 2, 3), Instruction(Op.SELECT, 5, 6, 2)]
        case "ignored":  # row 2 stays as it is
            instructions = [Instruction(Op.EQ, 0, 1), Instruction(Op.FADD, 2, 3), Instruction(Op.SELECT, 5, 6, 2)]
            instructions += [Instruction(Op.EQ, 0, 4), Instruction(Op.SELECT, 8, 2, 7)]
        case "inverted":  # not skippable: it adds where the key differs
            instructions = [Instruction(Op.EQ, 1, 0), Instruction(Op.FADD, 2, 3), Instruction(Op.SELECT, 5, 2, 6)]
        case _:  # not skippable: something else happens where the key differs
            instructions = [Instruction(Op.EQ, 1, 0), Instruction(Op.FADD, 2, 3), Instruction(Op.FMUL, 2, 3)]
            instructions += [Instruction(Op.SELECT, 5, 6, 7)]
    body = ScalarProgram(4, (2,), tuple(instructions))
    return Node(TensorType(F32, (rows, width)), (key, part), inputs, body, fold, draw.random.choice([0, 0x3F800000]))


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


def drawn_table_gradient(seed: int) -> tuple[Node, list[Words]]:
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
