"""Nodes whose kernels are tested: every primitive, and every class of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

_SPECIALS = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),  # around 0
        *(0x3F800000, 0xBF800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x4B000000, 0x4B7FFFFF, 0xCB000001),  # integers
        *(0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0xDF000000),  # 2^31, 2^63
        *(0x33000000, 0x33000001, 0x387FC000, 0x38800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x7F7FFFFF),  # of float16
        *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FABCDEF),  # no numbers
        *(0x00000002, 0x00000005, 0x0000001F, 0x00000020, 0x00000021, 0x00000040, 0x000000FF, 0xFFFFFFE0),  # of shifts
    ],
    np.uint32,
)


def counted_words(stream: int, count: int) -> Words:
    """Any words: half of them arbitrary, three eighths numbers near 1, the rest special ones."""
    drawn, kind = _mixed(stream, count), _mixed(stream + 1_000, count)
    special = _SPECIALS[(kind >> 8) % np.uint32(_SPECIALS.size)]
    chosen = np.where(kind % 8 == 0, special, np.where(kind % 8 < 4, _near_one(drawn), drawn))
    return np.asarray(chosen, np.uint32)


def counted_numbers(stream: int, count: int) -> Words:
    """Numbers of magnitude 2^-8 to 2: sums of many of them stay finite, and round."""
    return _near_one(_mixed(stream, count))


def counted_integers(stream: int, count: int, limit: int) -> Words:
    """Integers from 0 to ``limit`` - 1."""
    return np.asarray(_mixed(stream, count) % np.uint32(limit), np.uint32)


def _near_one(words: Words) -> Words:
    """Words with the exponent replaced by one of eight."""
    return np.asarray(words & np.uint32(0x807FFFFF) | (words >> 23 & 7) + np.uint32(119) << 23, np.uint32)


def _mixed(stream: int, count: int) -> Words:
    """The finalizer of MurmurHash3 on a counter."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(stream * 0x85EBCA6B % 2**32)
        x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ x >> 16, np.uint32)


NEGATIVE_ZERO = 0x80000000
SHORT, FULL = 1 << 16, 1 << 24
"""Words on which each primitive is tested."""
STEP = 3
_ACCUMULATOR = Input(InputKind.ACCUMULATOR)
_FFMA = (Instruction(Op.FFMA, 1, 2, 0),)
_INTEGERS = (Instruction(Op.MUL, 1, 2), Instruction(Op.ADD, 0, 3))


@dataclass(frozen=True)
class TestedNode:
    """A node with what it reads."""

    __test__ = False

    name: str
    node: Node
    tensors: Sequence[Words]


def primitive_node(op: Op, words: int) -> Node:
    """A map that is one primitive."""
    operands = tuple(_operand(number, (words,), (1,)) for number in range(ARITY[op]))
    inputs = tuple(Input(InputKind.OPERAND, number) for number in range(ARITY[op]))
    body = ScalarProgram(ARITY[op], (), (Instruction(op, *range(ARITY[op])),))
    return Node(TensorType(DType.F32, (words,)), operands, inputs, body)


def primitive(op: Op, words: int) -> TestedNode:
    """A primitive on counted words."""
    return TestedNode(op.name, primitive_node(op, words), [counted_words(number, words) for number in range(ARITY[op])])


def contraction(rows: int, columns: int, terms: int, integers: bool = False, batch: int = 1) -> TestedNode:
    """A product of matrices, of which tiles cover the edges in part."""
    x, y, shape = (batch, rows, terms), (batch, terms, columns), (batch, rows, columns)
    operands = (_operand(0, x, (rows * terms, terms, 0, 1)), _operand(1, y, (terms * columns, 0, 1, columns)))
    body = ScalarProgram(3, (), _INTEGERS if integers else _FFMA)
    node = Node(TensorType(DType.F32, shape), operands, _terms(2), body, (terms,), NEGATIVE_ZERO)
    name = f"contraction of {'integers' if integers else 'numbers'} {batch} x {rows} x {terms} x {columns}"
    tensors = [counted_numbers(number, operand.type.numel) for number, operand in enumerate(operands)]
    return TestedNode(name, node, [tensors[0].reshape(x), tensors[1].reshape(y)])


def classes() -> Iterator[TestedNode]:
    """A node for each class of kernels."""
    for integers in (False, True):
        yield contraction(137, 130, 67, integers, batch=2)
        yield contraction(9, 70, 1, integers)
    yield _any_words()
    yield _bytes()
    yield _convolution()
    yield _fold("row sums in 32 lanes", Op.FADD, 0)
    yield _fold("row maxima in 32 lanes", Op.FMAX, 0xFF800000)
    yield _keyed_fold()
    yield _gather("gather", 50)
    yield _gather("gather with a limit beyond every index", 2**40)
    yield _coordinates()


def _any_words() -> TestedNode:
    """A contraction of words of every kind: infinities, subnormals, NaNs."""
    few = contraction(33, 40, 3)
    tensors = [counted_words(number + 7, t.size).reshape(t.shape) for number, t in enumerate(few.tensors)]
    return TestedNode("contraction of any words", few.node, tensors)


def _bytes() -> TestedNode:
    """A contraction of integers that all fit into signed bytes: units for these multiply them."""
    many = contraction(137, 130, 67, integers=True, batch=2)
    drawn = [counted_integers(number + 80, t.size, 256).reshape(t.shape) for number, t in enumerate(many.tensors)]
    return TestedNode("contraction of bytes", many.node, [words - np.uint32(128) for words in drawn])


def _convolution() -> TestedNode:
    """Windows of 3 by 3 around each place of padded images."""
    images, channels, height, width, made = 3, 5, 11, 13, 18
    x, w, out = (images, channels, height, width), (made, channels, 3, 3), (images, made, height, width)
    rows, columns = Affine(-1, (0, 0, 0, 1, 0, 0, 1, 0)), Affine(-1, (0, 0, 0, 0, 1, 0, 0, 1))
    area = height * width
    windows = Operand(
        Source.CONSTANT,
        0,
        TensorType(DType.F32, x),
        Affine(-width - 1, (0, channels * area, 0, width, 1, area, width, 1)),
        0,
        (Bound(rows, height), Bound(columns, width)),
    )
    weights = _operand(1, w, (0, channels * 9, 0, 0, 9, 3, 1))
    node = Node(
        TensorType(DType.F32, out), (windows, weights), _terms(2), ScalarProgram(3, (), _FFMA), (channels, 3, 3), 0
    )
    tensors = [counted_numbers(20, images * channels * area).reshape(x), counted_numbers(21, made * channels * 9)]
    return TestedNode("convolution", node, [tensors[0], tensors[1].reshape(w)])


def _fold(name: str, op: Op, init: int) -> TestedNode:
    """Rows of 1,000 numbers; lane l takes those at l, l + 32, ... that are there."""
    rows, terms, lanes = 37, 1_000, 32
    rounds = -(-terms // lanes)
    inside = (Bound(Affine(0, (0, 0, 1, lanes)), terms),)
    address = Affine(0, (0, terms, 1, lanes))
    operand = Operand(Source.CONSTANT, 0, TensorType(DType.F32, (rows, terms)), address, init, inside)
    body = ScalarProgram(2, (), (Instruction(op, 0, 1),))
    node = Node(TensorType(DType.F32, (rows, lanes)), (operand,), _terms(1), body, (rounds,), init)
    return TestedNode(name, node, [counted_numbers(30, rows * terms).reshape(rows, terms)])


def _keyed_fold() -> TestedNode:
    """The gradient of a table: each row gets, in order, the terms with its key; some keys name no row."""
    rows, width, terms = 40, 5, 700
    operands = (_operand(0, (terms,), (0, 0, 1), DType.I32), _operand(1, (terms, width), (0, 1, width)))
    inputs = (*_terms(2), Input(InputKind.COORDINATE, 1))
    body = (Instruction(Op.EQ, 1, 3), Instruction(Op.FADD, 0, 2), Instruction(Op.SELECT, 4, 5, 0))
    node = Node(TensorType(DType.F32, (rows, width)), operands, inputs, ScalarProgram(4, (), body), (terms,), 0)
    keys = counted_integers(40, terms, rows + 3) - 1
    return TestedNode("keyed fold", node, [keys, counted_numbers(41, terms * width).reshape(terms, width)])


def _gather(name: str, limit: int) -> TestedNode:
    """Rows of a table by any words as indexes."""
    table, width, count = 50, 4, 300
    index = _operand(0, (count,), (1, 0), DType.I32)
    moved = Affine(0, (0, 0, 1))
    word = Operand(Source.CONSTANT, 1, TensorType(DType.F32, (table, width)), moved, 7, (), Gather(0, width, limit))
    body = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))
    node = Node(TensorType(DType.F32, (count, width)), (index, word), (Input(InputKind.OPERAND, 1),), body)
    indexes = counted_words(50, count)
    indexes[::2] = counted_integers(51, count, table + 2)[::2]
    return TestedNode(name, node, [indexes, counted_words(52, table * width).reshape(table, width)])


def _coordinates() -> TestedNode:
    """A map that sees the step and where it is."""
    shape = (7, 30)
    inputs = (Input(InputKind.OPERAND, 0), *(Input(InputKind.COORDINATE, number) for number in range(3)))
    body = (Instruction(Op.MUL, 1, 2), Instruction(Op.XOR, 4, 3), Instruction(Op.ADD, 5, 0))
    node = Node(TensorType(DType.F32, shape), (_operand(0, shape, (1, 7)),), inputs, ScalarProgram(4, (), body))
    return TestedNode("coordinates", node, [counted_words(60, 210).reshape(shape)])


def _operand(number: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType = DType.F32) -> Operand:
    return Operand(Source.CONSTANT, number, TensorType(dtype, shape), Affine(0, (0, *strides)))


def _terms(operands: int) -> tuple[Input, ...]:
    return (_ACCUMULATOR, *(Input(InputKind.OPERAND, number) for number in range(operands)))
