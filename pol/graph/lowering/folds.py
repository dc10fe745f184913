"""Folds over whole dimensions, in an order that memory likes and that is part of the program.

Neighboring reduced dimensions that are evenly spaced in memory count as one. Up to 128 terms are folded one after the
other, in row-major order. More terms are folded in 32 lanes: along the last reduced dimension of at least 32 terms (or
the longest one, in as many lanes as the greatest power of two that it holds) lane l takes the terms l, l + 32, l + 64,
..., in row-major order with those of the other reduced dimensions. Lanes longer than 256 rounds are cut into equal
pieces, which are folded in order. At last halves are joined: lane l with lane l + 16, then l + 8, 4, 2 and 1.

The lanes are the first dimension of their node, so that joining them reads memory in order too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add, and_, mul, or_
from typing import Any

from pol.arithmetic.registers import Register, Word, maximum, minimum, select
from pol.graph.lowering.emitter import Argument, Emitter, Formula, NodeRead
from pol.graph.lowering.values import Value, View, axis_index, cut, permute, squeeze, unsqueeze, view_of
from pol.graph.node import MAX_FOLD_RANK, Affine, Bound
from pol.graph.tensor_type import MAX_RANK, DType, TensorType

SEQUENTIAL = 128
LANES = 32
ROUNDS = 256
_JOINED = 8


@dataclass(frozen=True)
class Monoid:
    """An associative operation up to rounding, and its neutral word."""

    join: Callable[[Any, Any], Register]
    neutral: int
    dtype: DType


def _least(a: Word, b: Word) -> Word:
    return select(b < a, b, a)


def _greatest(a: Word, b: Word) -> Word:
    return select(a < b, b, a)


FLOAT_SUM = Monoid(add, 0, DType.F32)
FLOAT_PRODUCT = Monoid(mul, 0x3F800000, DType.F32)
MAXIMUM = Monoid(maximum, 0xFF800000, DType.F32)
MINIMUM = Monoid(minimum, 0x7F800000, DType.F32)
INTEGER_SUM = Monoid(add, 0, DType.I32)
INTEGER_PRODUCT = Monoid(mul, 1, DType.I32)
INTEGER_MAXIMUM = Monoid(_greatest, 0x80000000, DType.I32)
INTEGER_MINIMUM = Monoid(_least, 0x7FFFFFFF, DType.I32)
ANY = Monoid(or_, 0, DType.I32)
ALL = Monoid(and_, 1, DType.I32)


@dataclass(frozen=True)
class _Run:
    """Reduced dimensions as one: how many terms, and the distance of neighbors in every operand."""

    size: int
    strides: tuple[int, ...]


def reduce(emitter: Emitter, value: Value, axes: Sequence[int], monoid: Monoid, part: str = "") -> View:
    """The value reduced along dimensions, which disappear."""
    return fold_terms(emitter, [value], axes, monoid, monoid.join, [monoid.neutral], part)


def fold_terms(
    emitter: Emitter,
    values: Sequence[Value],
    axes: Sequence[int],
    monoid: Monoid,
    formula: Formula,
    fills: Sequence[int],
    part: str = "",
) -> View:
    """Terms made of several tensors of one shape, reduced along dimensions, which disappear.

    `formula` joins a term to the accumulator. With `fills` in the place of the operands it must give the accumulator
    back, whatever the words of operands that are no view: they stand where lanes have no terms.
    """
    rank = len(values[0].shape)
    gone = sorted({axis_index(axis, rank) for axis in axes}) if rank else []
    kept = [axis for axis in range(rank) if axis not in gone]
    operands = list(values)
    operands[0] = emitter.view(operands[0])
    runs = _runs(operands, gone)
    if len(runs) > MAX_FOLD_RANK:
        operands = [
            emitter.stored(permute(value, [*kept, *gone])) if isinstance(value, View) else value for value in operands
        ]
        kept, gone = list(range(len(kept))), list(range(len(kept), rank))
        runs = _runs(operands, gone)
    shape = tuple(operands[0].shape[axis] for axis in kept)
    count = math.prod(run.size for run in runs)
    if count <= SEQUENTIAL or len(shape) + 2 > MAX_RANK:
        arguments = [_seen(value, [], kept, [(run, 1) for run in runs], i) for i, value in enumerate(operands)]
        terms = tuple(run.size for run in runs)
        return emitter.fold(TensorType(monoid.dtype, shape), terms, monoid.neutral, arguments, formula, part)
    return _lanes(emitter, operands, kept, runs, monoid, formula, fills, part)


def _runs(values: Sequence[Value], axes: Sequence[int]) -> list[_Run]:
    """The dimensions without those of size 1, neighbors merged where every operand is evenly spaced; at least one."""
    runs: list[_Run] = []
    for axis in axes:
        size = values[0].shape[axis]
        strides = tuple(value.strides[axis] if isinstance(value, View) else 0 for value in values)
        if size == 1:
            continue
        if runs and runs[-1].strides == tuple(stride * size for stride in strides):
            runs[-1] = _Run(runs[-1].size * size, strides)
        else:
            runs.append(_Run(size, strides))
    return runs or [_Run(1, (0,) * len(values))]


Axis = tuple[_Run, int]
"""A dimension that steps over every so many terms of a run."""


def _seen(value: Value, front: Sequence[tuple[int, Axis]], kept: Sequence[int], back: Sequence[Axis], i: int) -> Value:
    """Operand `i` over (front..., kept..., back...)."""
    if not isinstance(value, View):
        return value
    shape = (*(size for size, _ in front), *(value.shape[axis] for axis in kept), *(run.size for run, _ in back))
    strides = (
        *(run.strides[i] * step for _, (run, step) in front),
        *(value.strides[axis] for axis in kept),
        *(run.strides[i] * step for run, step in back),
    )
    return replace(value, shape=shape, strides=strides)


def _lanes(
    emitter: Emitter,
    values: Sequence[Value],
    kept: Sequence[int],
    runs: Sequence[_Run],
    monoid: Monoid,
    formula: Formula,
    fills: Sequence[int],
    part: str,
) -> View:
    place = _laned(runs)
    run = runs[place]
    lanes = min(LANES, 1 << (run.size.bit_length() - 1))
    rounds = -(-run.size // lanes)
    pieces = -(-rounds // ROUNDS)
    rounds = -(-rounds // pieces)
    front: list[tuple[int, Axis]] = [(lanes, (run, 1)), (pieces, (run, lanes * rounds))]
    back = [(other, 1) for other in runs]
    back[place] = (replace(run, size=rounds), lanes)
    steps = [1, lanes * rounds, *[0] * len(kept), *[0] * len(runs)]
    steps[2 + len(kept) + place] = lanes
    if pieces == 1:
        del front[1], steps[1]
    bounds = (Bound(Affine(0, (0, *steps)), run.size),) if lanes * rounds * pieces != run.size else ()
    arguments: list[Argument] = []
    for i, (value, fill) in enumerate(zip(values, fills, strict=True)):
        seen = _seen(value, front, kept, back, i)
        arguments.append(NodeRead(seen, fill=fill, bounds=bounds) if isinstance(seen, View) else seen)
    shape = tuple(values[0].shape[axis] for axis in kept)
    prefix = f"{part}." if part else ""
    type_ = TensorType(monoid.dtype, (*(size for size, _ in front), *shape))
    terms = tuple(run.size for run, _ in back)
    joined: Value = emitter.fold(type_, terms, monoid.neutral, arguments, formula, f"{prefix}lanes")
    if pieces > 1:
        moved = permute(joined, [0, *range(2, 2 + len(shape)), 1])
        joined = emitter.fold(
            TensorType(monoid.dtype, (lanes, *shape)),
            (pieces,),
            monoid.neutral,
            [moved],
            monoid.join,
            f"{prefix}pieces",
        )
    return _joined(emitter, joined, monoid, part, prefix)


def _laned(runs: Sequence[_Run]) -> int:
    """Which run the lanes cut: the last one that fills them, or else the longest."""
    filling = [i for i, run in enumerate(runs) if run.size >= LANES]
    return filling[-1] if filling else max(range(len(runs)), key=lambda i: runs[i].size)


def _joined(emitter: Emitter, value: Value, monoid: Monoid, part: str, prefix: str) -> View:
    """The lanes, first dimension, joined by halves: up to eight in one map."""
    width = value.shape[0]
    while width > 1:
        count = min(_JOINED, width)
        width //= count
        parts = [cut(value, 0, i * width, (i + 1) * width) for i in range(count)]
        if width == 1:
            parts = [squeeze(lane, [0]) for lane in parts]

        def halves(*lanes: Register) -> Register:
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = tuple(monoid.join(*pair) for pair in zip(lanes[:half], lanes[half:], strict=True))
            return lanes[0]

        value = emitter.map(
            parts[0].shape, monoid.dtype, parts, halves, part if width == 1 else f"{prefix}join_{width}"
        )
    return view_of(value)


def restored(value: Value, axes: Sequence[int], rank: int) -> Value:
    """The reduced dimensions put back with size 1."""
    for axis in sorted({axis_index(axis, rank) for axis in axes} if rank else set()):
        value = unsqueeze(value, axis)
    return value
