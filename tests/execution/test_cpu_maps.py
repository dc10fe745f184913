"""Maps by rows, by several short rows and by copies of joined tensors give the bits of the reference."""

import itertools

import pytest
from test_cpu_nodes import check

from lab.kernels.drawn_forms import DescriptorDraw
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType, row_major

F32 = DType.F32
SHAPES = [
    (5, 7, 9), (700, 3), (40, 30, 2), (6, 20, 3, 2), (4, 50, 5), (33, 65), (2, 3, 127), (9, 128), (3, 5, 700),
    (2, 1300), (1500, 70), (130, 900), (90_000,),
]  # fmt: skip


def broadcast(draw: DescriptorDraw, position: int, shape: tuple[int, ...]) -> Operand:
    """A tensor over some of the dimensions: full, one word per row, one row for all, or any other choice."""
    kept = draw.random.choice([len(shape) * (True,), tuple(draw.random.random() < 0.5 for _ in shape)])
    own = tuple(size for size, keep in zip(shape, kept, strict=True) if keep)
    strides = iter(row_major(own))
    type_ = TensorType(F32, own)
    return Operand(Source.CONSTANT, position, type_, Affine(0, (0, *(next(strides) if keep else 0 for keep in kept))))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_rows_with_broadcast_operands_and_coordinates(shape: tuple[int, ...], seed: int) -> None:
    draw = DescriptorDraw(seed * 100 + len(shape))
    operands = tuple(broadcast(draw, position, shape) for position in range(1 + seed))
    inputs = [Input(InputKind.OPERAND, i) for i in range(len(operands))]
    inputs += [Input(InputKind.COORDINATE, i) for i in range(1 + len(shape)) if draw.random.random() < 0.5]
    body = draw.body(len(inputs)) if seed else ScalarProgram(len(inputs), (), (Instruction(Op.MOV, 0),))
    node = Node(TensorType(F32, shape), operands, tuple(inputs), body)
    check(node, 1, [draw.tensor(operand.type) for operand in operands], (1, 2))


def part(position: int, shape: tuple[int, ...], axis: int, begin: int, size: int) -> Operand:
    """`size` positions from `begin` on of an output dimension; 0 elsewhere."""
    own = tuple(size if d == axis else n for d, n in enumerate(shape))
    strides = row_major(own)
    bound = Affine(-begin, (0, *(int(d == axis) for d in range(len(shape)))))
    address = Affine(-begin * strides[axis], (0, *strides))
    return Operand(Source.CONSTANT, position, TensorType(F32, own), address, 0, (Bound(bound, size),))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["side by side", "gaps", "overlap"])
def test_joined_tensors(shape: tuple[int, ...], layout: str) -> None:
    draw = DescriptorDraw(len(layout) + shape[0])
    for axis in range(len(shape)):
        if shape[axis] < 5:
            continue
        cuts = [0, *sorted(draw.random.sample(range(1, shape[axis]), 3)), shape[axis]]
        ranges = list(itertools.pairwise(cuts))
        if layout == "gaps":
            ranges = ranges[1:3]
        if layout == "overlap":
            ranges[1] = (cuts[0], cuts[2])
        draw.random.shuffle(ranges)
        operands = tuple(part(i, shape, axis, begin, end - begin) for i, (begin, end) in enumerate(ranges))
        inputs = tuple(Input(InputKind.OPERAND, i) for i in range(len(operands)))
        count = len(operands)
        body = ScalarProgram(
            count, (), tuple(Instruction(Op.OR, i + 1, 0 if i == 0 else count + i - 1) for i in range(count - 1))
        )
        node = Node(TensorType(F32, shape), operands, inputs, body)
        check(node, 1, [draw.tensor(operand.type) for operand in operands], (1, 2))
