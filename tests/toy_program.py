"""A step program small enough to read that still needs every level of the dispute game."""

import numpy as np

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

STEPS, BATCH, FEATURES, OUT, SAMPLES = 40, 4, 70, 5, 10
DATA = TensorType(DType.F32, (SAMPLES, FEATURES))
ORDER = TensorType(DType.I32, (STEPS, BATCH))
WEIGHT = TensorType(DType.F32, (FEATURES, OUT))
COUNTER = TensorType(DType.I32, ())
ROWS = TensorType(DType.F32, (BATCH, FEATURES))
SCORES = TensorType(DType.F32, (BATCH, OUT))


def one(op: Op, registers: int, *constants: float) -> ScalarProgram:
    """A body of one instruction over its inputs and constants, in this order."""
    builder = Builder(registers)
    operands = [builder.input(i) for i in range(registers)] + [builder.f32(c) for c in constants]
    return builder.build(builder.emit(op, *operands))


def operands_of(*operands: Operand) -> tuple[tuple[Operand, ...], tuple[Input, ...]]:
    """Operands, each an input of its own."""
    return operands, tuple(Input(InputKind.OPERAND, i) for i in range(len(operands)))


def same(source: Source, index: int, type_: TensorType) -> Operand:
    """Reads the element at the node's own place."""
    strides = [int(np.prod(type_.shape[d + 1 :])) for d in range(len(type_.shape))]
    return Operand(source, index, type_, Affine(0, (0, *strides)))


def build() -> StepProgram:
    """Twenty nodes: gather, matmul, a body of many instructions, update, and a chain with bounds and coordinates."""
    acc = Input(InputKind.ACCUMULATOR)
    first, second = Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)
    fma = one(Op.FFMA, 3)
    order = Operand(Source.CONSTANT, 1, ORDER, Affine(0, (BATCH, 1, 0)))
    row = Operand(Source.CONSTANT, 0, DATA, Affine(0, (0, 0, 1)), gather=Gather(0, FEATURES, SAMPLES))
    batch = Node(ROWS, (order, row), (second,), one(Op.MOV, 1))
    x = Operand(Source.NODE, 0, ROWS, Affine(0, (0, FEATURES, 0, 1)))
    w = Operand(Source.STATE, 0, WEIGHT, Affine(0, (0, 0, 1, OUT)))
    scores = Node(SCORES, (x, w), (first, second, acc), fma, fold=(FEATURES,))
    tanh = Node(SCORES, *operands_of(same(Source.NODE, 1, SCORES)), functions.tanh())
    xt = Operand(Source.NODE, 0, ROWS, Affine(0, (0, 1, 0, FEATURES)))
    s = Operand(Source.NODE, 2, SCORES, Affine(0, (0, 0, 1, OUT)))
    gradient = Node(WEIGHT, (xt, s), (first, second, acc), fma, fold=(BATCH,))
    builder = Builder(2)
    momentum_body = builder.build(builder.emit(Op.FFMA, builder.input(0), builder.f32(0.9), builder.input(1)))
    momentum = Node(WEIGHT, *operands_of(same(Source.STATE, 1, WEIGHT), same(Source.NODE, 3, WEIGHT)), momentum_body)
    builder = Builder(2)
    update_body = builder.build(builder.emit(Op.FFMA, builder.input(1), builder.f32(-0.05), builder.input(0)))
    update = Node(WEIGHT, *operands_of(same(Source.STATE, 0, WEIGHT), same(Source.NODE, 4, WEIGHT)), update_body)
    builder = Builder(1)
    count_body = builder.build(builder.emit(Op.ADD, builder.input(0), builder.const(1)))
    counter = Node(COUNTER, *operands_of(Operand(Source.STATE, 2, COUNTER, Affine(0, (0,)))), count_body)
    nodes = [batch, scores, tanh, gradient, momentum, update, counter]
    while len(nodes) < 20:
        nodes.append(shifted(len(nodes) - 1 if len(nodes) > 7 else 1))
    slots = (
        Slot(Component.PARAMETER, WEIGHT, 5),
        Slot(Component.OPTIMIZER, WEIGHT, 4),
        Slot(Component.BUFFER, COUNTER, 6),
    )
    program = StepProgram(slots, (DATA, ORDER), tuple(nodes))
    program.validate()
    return program


def shifted(source: int) -> Node:
    """The neighbour on the right (1.5 past the edge) times the column's number, reduced to the step's parity."""
    builder = Builder(3)
    column = builder.emit(Op.I2F, builder.input(1))
    parity = builder.emit(Op.AND, builder.input(2), builder.const(1))
    product = builder.emit(Op.FMUL, builder.input(0), column)
    body = builder.build(builder.emit(Op.SELECT, parity, product, builder.input(0)))
    right = Operand(
        Source.NODE, source, SCORES, Affine(1, (0, OUT, 1)), fill=0x3FC00000, bounds=(Bound(Affine(1, (0, 0, 1)), OUT),)
    )
    coordinates = (Input(InputKind.COORDINATE, 2), Input(InputKind.COORDINATE, 0))
    return Node(SCORES, (right,), (Input(InputKind.OPERAND, 0), *coordinates), body)


def constants(seed: int = 1) -> list[Words]:
    """Data and sample order."""
    random = np.random.default_rng(seed)
    data = random.normal(size=DATA.shape).astype(np.float32).view(np.uint32)
    return [data, random.integers(0, SAMPLES, ORDER.shape).astype(np.uint32)]


def initial_state(seed: int = 2) -> list[Words]:
    """Weights, momentum, counter."""
    random = np.random.default_rng(seed)
    weight = (0.1 * random.normal(size=WEIGHT.shape)).astype(np.float32).view(np.uint32)
    return [weight, np.zeros(WEIGHT.shape, np.uint32), np.zeros((), np.uint32)]
