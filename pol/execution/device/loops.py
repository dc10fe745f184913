"""The loops of a node: its dimensions, merged where every address allows, and the affine forms over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.graph.node import MAX_STEP, Affine, Gather, InputKind, Node


@dataclass(frozen=True)
class Form:
    """`base + step * STEP + sum out_i * o_i + sum fold_i * f_i`: an affine form over merged dimensions."""

    base: int
    step: int
    out: tuple[int, ...]
    fold: tuple[int, ...]

    def axes(self) -> frozenset[int]:
        """The output dimensions that it varies with."""
        return frozenset(axis for axis, stride in enumerate(self.out) if stride)

    @property
    def folds(self) -> bool:
        """Whether it varies with the fold."""
        return any(self.fold)


@dataclass(frozen=True)
class Read:
    """One operand: its address, and the bounds outside of which it is the fill word."""

    address: Form
    bounds: tuple[tuple[Form, int], ...]
    numel: int
    fill: int
    gather: Gather | None

    @property
    def forms(self) -> tuple[Form, ...]:
        """The address and the forms of the bounds."""
        return (self.address, *(form for form, _ in self.bounds))


@dataclass(frozen=True)
class Loops:
    """A node as loops over an output and a fold, both row-major, and the reads of its operands."""

    out: tuple[int, ...]
    fold: tuple[int, ...]
    reads: tuple[Read, ...]
    coordinates: dict[int, Form]
    """Of the inputs that are coordinates, by the number of the input."""

    def axes(self, operand: int) -> frozenset[int]:
        """The output dimensions that the word of an operand varies with."""
        read = self.reads[operand]
        own: frozenset[int] = frozenset().union(*(form.axes() for form in read.forms))
        return own if read.gather is None else own | self.axes(read.gather.operand)

    def folds(self, operand: int) -> bool:
        """Whether the word of an operand varies with the fold."""
        read = self.reads[operand]
        return any(form.folds for form in read.forms) or (read.gather is not None and self.folds(read.gather.operand))

    def interval(self, form: Form) -> tuple[int, int]:
        """The least and the greatest value of a form, over all steps."""
        low = high = form.base
        sizes = (MAX_STEP + 1, *self.out, *self.fold)
        for stride, size in zip((form.step, *form.out, *form.fold), sizes, strict=True):
            low += min(0, stride * (size - 1))
            high += max(0, stride * (size - 1))
        return low, high

    def within(self, form: Form, limit: int) -> bool:
        """Whether a form is in 0 .. limit - 1 everywhere."""
        low, high = self.interval(form)
        return low >= 0 and high < limit


def loops_of(node: Node) -> Loops:
    """The loops of a node; dimensions of one value are left out, but at least one output dimension stays."""
    forms = _affine_forms(node)
    rank = len(node.type.shape)
    out = _merged(forms, node.type.shape, 1) or [(1, -1)]
    fold = _merged(forms, node.fold, 1 + rank)

    def form_of(affine: Affine) -> Form:
        def strides(merged: Sequence[tuple[int, int]]) -> tuple[int, ...]:
            return tuple(affine.strides[coordinate] if coordinate >= 0 else 0 for _, coordinate in merged)

        return Form(affine.base, affine.strides[0], strides(out), strides(fold))

    reads = tuple(
        Read(
            form_of(operand.address),
            tuple((form_of(bound.affine), bound.limit) for bound in operand.bounds),
            operand.type.numel,
            operand.fill,
            operand.gather,
        )
        for operand in node.operands
    )
    coordinates = {
        number: form_of(_coordinate(node, entry.index))
        for number, entry in enumerate(node.inputs)
        if entry.kind is InputKind.COORDINATE
    }
    return Loops(tuple(size for size, _ in out), tuple(size for size, _ in fold), reads, coordinates)


def _affine_forms(node: Node) -> list[Affine]:
    """All forms that merged dimensions must agree with."""
    forms = [form for operand in node.operands for form in (operand.address, *(b.affine for b in operand.bounds))]
    forms += [_coordinate(node, entry.index) for entry in node.inputs if entry.kind is InputKind.COORDINATE]
    return forms


def _coordinate(node: Node, index: int) -> Affine:
    """A coordinate as a form: its own."""
    strides = [0] * (1 + len(node.type.shape) + len(node.fold))
    strides[index] = 1
    return Affine(0, tuple(strides))


def _merged(forms: Sequence[Affine], sizes: Sequence[int], first: int) -> list[tuple[int, int]]:
    """(size, coordinate whose strides count) of each run of dimensions that act as one."""
    merged: list[tuple[int, int]] = []
    for position, size in enumerate(sizes):
        coordinate = first + position
        if size == 1:
            continue
        if merged and all(f.strides[merged[-1][1]] == f.strides[coordinate] * size for f in forms):
            merged[-1] = (merged[-1][0] * size, coordinate)
        else:
            merged.append((size, coordinate))
    return merged
