"""Matrix products among the nodes of a step program, found in their descriptors, and their operands as matrices.

A product is a fold whose body is one fused multiply-add of two operands. A coordinate of the output that moves only one
operand counts its rows or columns; one that moves both counts pairs of matrices. Convolutions have this form too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pol.arithmetic.primitives import Op
from pol.execution.operand_sources import Sources, source_words
from pol.graph.node import InputKind, Node, Operand
from pol.graph.tensor_type import DType

MAX_TERMS = 1 << 20
"""Longest fold that counts as a product: beyond it our own rounding is no longer small beside that of the fold."""
_MAX_SPAN = 4
"""How many times its tensor an operand may span with what is read around it: padding does so, hostile strides more."""

Matrices = NDArray[np.float64]
"""Of shape (pairs, rows, terms) for an operand, (pairs, rows, columns) for a result."""


@dataclass(frozen=True)
class Product:
    """Which operands a product joins, and which coordinates of the output move both, only one or only the other."""

    node: Node
    operands: tuple[Operand, Operand]
    pairs: tuple[int, ...]
    sides: tuple[tuple[int, ...], tuple[int, ...]]

    def size(self, axes: Sequence[int]) -> int:
        """How many elements coordinates of the output count together."""
        return math.prod(self.node.type.shape[axis] for axis in axes)

    @property
    def rows(self) -> int:
        """Rows of the result: what the first operand alone moves."""
        return self.size(self.sides[0])

    @property
    def columns(self) -> int:
        """Columns of the result: what the second operand alone moves."""
        return self.size(self.sides[1])

    @property
    def gain(self) -> float:
        """Multiplications of the product over the words that a projection reads; one pair of matrices."""
        rows, columns, terms = self.rows, self.columns, self.node.terms
        return rows * columns * terms / (rows * terms + columns * terms + rows * columns)

    def matrices(self, which: int, step: int, sources: Sources) -> Matrices:
        """Operand 0 or 1 as (pairs, rows or columns, terms), exact: every binary32 is a binary64."""
        shape = (*self.node.type.shape, *self.node.fold)
        rank = len(self.node.type.shape)
        own = [*self.pairs, *self.sides[which]]
        values = _read(self.operands[which], shape, [*own, *range(rank, len(shape))], step, sources)
        ordered = values.transpose([*own, *range(rank, len(shape)), *self.sides[1 - which]])
        return ordered.reshape(self.size(self.pairs), self.size(self.sides[which]), self.node.terms)

    def result(self, output: NDArray[np.uint32]) -> Matrices:
        """The node's output as (pairs, rows, columns), exact."""
        ordered = output.view(np.float32).transpose([*self.pairs, *self.sides[0], *self.sides[1]])
        return ordered.astype(np.float64).reshape(self.size(self.pairs), self.rows, self.columns)


def find_product(node: Node) -> Product | None:
    """The product that a node is; None for every other node, which can only be recomputed."""
    body = node.body
    if not node.fold or node.init or node.terms > MAX_TERMS or node.type.dtype is not DType.F32:
        return None
    if len(body.instructions) != 1 or body.instructions[0].op is not Op.FFMA or body.constants:
        return None
    first, second, last = (node.inputs[register] for register in body.instructions[0].operands)
    kinds = (first.kind, second.kind, last.kind)
    if kinds != (InputKind.OPERAND, InputKind.OPERAND, InputKind.ACCUMULATOR):
        return None
    operands = (node.operands[first.index], node.operands[second.index])
    if not all(_is_plain(operand, node) for operand in operands):
        return None
    axes = range(len(node.type.shape))
    moved = [{axis for axis in axes if _moves(operand, axis)} for operand in operands]
    # A coordinate that moves neither repeats elements: rows as good as any.
    left = tuple(axis for axis in axes if axis not in moved[1])
    right = tuple(axis for axis in axes if axis in moved[1] - moved[0])
    return Product(node, operands, tuple(sorted(moved[0] & moved[1])), (left, right))


def _is_plain(operand: Operand, node: Node) -> bool:
    """Whether it can be read as a view with zeros around it."""
    if operand.gather is not None or operand.fill or operand.type.dtype is not DType.F32:
        return False
    extents = node.extents[1:]
    span = 1 + sum(abs(s) * (n - 1) for s, n in zip(operand.address.strides[1:], extents, strict=True))
    return span <= _MAX_SPAN * operand.type.numel


def _moves(operand: Operand, axis: int) -> bool:
    return any(affine.strides[1 + axis] for affine in (operand.address, *(bound.affine for bound in operand.bounds)))


def _read(operand: Operand, shape: Sequence[int], axes: Sequence[int], step: int, sources: Sources) -> Matrices:
    """The operand over all coordinates of a node but the step; coordinates that are not in ``axes`` have size 1."""
    seen = [size if axis in axes else 1 for axis, size in enumerate(shape)]
    words = source_words(operand, sources).view(np.float32)
    strides = operand.address.strides[1:]
    base = operand.address.base + step * operand.address.strides[0]
    reach = [stride * (size - 1) for stride, size in zip(strides, seen, strict=True)]
    low, high = base + sum(min(r, 0) for r in reach), base + sum(max(r, 0) for r in reach)
    if low < 0 or high >= words.size:
        around = np.zeros(high - low + 1, np.float32)
        begin, end = max(low, 0), min(high + 1, words.size)
        if begin < end:
            around[begin - low : end - low] = words[begin:end]
        words, base = around, base - low
    view = as_strided(words[base:], seen, [4 * stride for stride in strides], writeable=False)
    values = view.astype(np.float64)
    for bound in operand.bounds:
        position = np.asarray(bound.affine.base + step * bound.affine.strides[0], np.int64)
        for axis, stride in enumerate(bound.affine.strides[1:]):
            if stride:
                index = [1] * len(shape)
                index[axis] = seen[axis]
                position = position + stride * np.arange(seen[axis]).reshape(index)
        values *= (position >= 0) & (position < bound.limit)
    return values
