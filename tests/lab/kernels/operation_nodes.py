"""Nodes as operations have them: matrix products, convolutions, gradients of table lookups."""

import numpy as np

from lab.kernels.drawn_descriptors import DescriptorDraw
from pol.arithmetic.primitives import Op
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
