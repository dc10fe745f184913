"""Writing at addresses from data: every position looks for the words that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, eq, or_
from typing import Any

from pol.arithmetic.registers import Word, select, to_float
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.folds import (
    FLOAT_PRODUCT,
    FLOAT_SUM,
    INTEGER_MAXIMUM,
    INTEGER_MINIMUM,
    INTEGER_PRODUCT,
    INTEGER_SUM,
    MAXIMUM,
    MINIMUM,
    Monoid,
)
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.places.gathering import common_shape, dimensions_before, indices_of, wrapped
from pol.graph.lowering.values import Fill, Value, View, axis_index, cut, expand, permute, scalar, unsqueeze, view_of
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import MAX_RANK, DType, TensorType

NOWHERE = 0xFFFFFFFF
"""An index that is no position."""


@lowers("aten.scatter_add.default", defines="self + (sum of the source words whose index is the coordinate, ascending)")
@lowers(
    *("aten.scatter.src", "aten.scatter.value"),
    defines="the last source word whose index is the coordinate, or else self",
)
def _scatter(call: Call) -> Value:
    """Position c along the dimension gets the source words whose index is c."""
    start, terms, key, source = _scattered(call)
    return _collected(call, start, terms, [key], source, "add" in call.node.operation)


def _scattered(call: Call) -> tuple[Value, tuple[int, ...], tuple[Argument, int], Argument]:
    """The tensor that is written to, the terms of each of its positions, their key, and the source words."""
    start, axis, index = call.tensor(0), call.integer(1), call.tensor(2)
    if not start.shape:
        raise call.unsupported("a tensor without dimensions")
    place = axis_index(axis, len(start.shape))
    source = call.operand(3)
    if isinstance(source, bool | int | float):
        source = expand(scalar(source, call.dtype), index.shape)
    for position, size in enumerate(index.shape):
        source = cut(source, position, 0, size)
    order = [position for position in range(len(start.shape)) if position != place]
    over = (*start.shape, index.shape[place])

    def over_terms(value: Value, fill: int) -> Argument:
        """The dimension moved to the end, behind the coordinates of the output."""
        return _extended(unsqueeze(permute(value, [*order, place]), place), over, fill, place)

    return start, over[-1:], (over_terms(index, NOWHERE), place), over_terms(source, 0)


_REDUCTIONS: Mapping[str, tuple[Monoid, Monoid]] = {
    "sum": (FLOAT_SUM, INTEGER_SUM),
    "mean": (FLOAT_SUM, INTEGER_SUM),
    "prod": (FLOAT_PRODUCT, INTEGER_PRODUCT),
    "amax": (MAXIMUM, INTEGER_MAXIMUM),
    "amin": (MINIMUM, INTEGER_MINIMUM),
}


@lowers(
    "aten.scatter_reduce.two",
    defines="the source words whose index is the coordinate, ascending: FADD from +0, FMUL from 1, FMAX, FMIN; mean: "
    "FDIV by their number; then joined with self, or self where there are none",
)
def _scatter_reduced(call: Call) -> Value:
    kind, keeps = call.argument(4), call.flag(5, "include_self", True)
    if not isinstance(kind, str) or kind not in _REDUCTIONS:
        raise call.unsupported(f"the reduction {kind!r}")
    monoid = _REDUCTIONS[kind][0 if call.dtype is DType.F32 else 1]
    if kind == "mean" and call.dtype is not DType.F32:
        raise call.unsupported("a mean of integers")
    start, terms, (key, place), source = _scattered(call)
    type_, emitter = TensorType(call.dtype, start.shape), call.emitter

    def join(total: Any, index: Word, here: Word, word: Any) -> Any:
        return select(index == here, monoid.join(total, word), total)

    def count(total: Word, index: Word, here: Word) -> Word:
        return total + (index == here)

    arguments: list[Argument] = [key, Coordinate(place), source]
    found = emitter.fold(type_, terms, monoid.neutral, arguments, join, kind)
    if keeps and kind != "mean":
        return emitter.map(type_.shape, type_.dtype, [start, found], monoid.join)
    counts = emitter.fold(TensorType(DType.I32, start.shape), terms, 0, arguments[:2], count, "count")

    def kept(before: Any, total: Any, count: Word) -> Any:
        total = monoid.join(before, total) if keeps else total
        number = count + int(keeps)
        result = total / to_float(number) if kind == "mean" else total
        return result if keeps else select(count == 0, before, result)

    return emitter.map(type_.shape, type_.dtype, [start, found, counts], kept)


def _extended(value: Value, shape: tuple[int, ...], fill: int, repeated: int) -> Argument:
    """A value over a shape that may be larger: the fill word outside of it, the same words along one dimension."""
    if isinstance(value, Fill):
        return Fill(value.word, value.dtype, shape)
    if not isinstance(value, View):
        return expand(value, shape)
    bounds = []
    for axis, (size, wanted) in enumerate(zip(value.shape, shape, strict=True)):
        if size < wanted and axis != repeated:
            unit = [0] * (1 + len(shape))
            unit[1 + axis] = 1
            bounds.append(Bound(Affine(0, tuple(unit)), size))
    moved = View(value.source, value.index, value.type, shape, value.base, value.strides, value.step_stride)
    return NodeRead(moved, fill, tuple(bounds)) if bounds else moved


@lowers("aten.index_add.default", defines="self + (sum of the source rows whose index is the row, ascending)")
@lowers("aten.index_copy.default", defines="the last source row whose index is the row, or else self")
def _index_into(call: Call) -> Value:
    """Rows of the source into the rows that a list of numbers names."""
    start, axis, index, source = call.tensor(0), call.integer(1), call.tensor(2), call.tensor(3)
    if not start.shape or len(index.shape) != 1:
        raise call.unsupported("a list of row numbers is needed")
    alpha = call.number(4, "alpha", 1)
    if alpha != 1:
        source = call.emitter.map(source.shape, source.dtype, [source], lambda word: word * alpha, "scaled")
    place = axis_index(axis, len(start.shape))
    order = [position for position in range(len(start.shape)) if position != place]
    over = (*start.shape, index.shape[0])
    rows = expand(unsqueeze(permute(source, [*order, place]), place), over)
    return _collected(
        call, start, over[-1:], [(view_of(expand(index, over)), place)], rows, "add" in call.node.operation
    )


@lowers(
    "aten.index_put.default",
    defines="self + (sum of the values at the place, ascending), or the last of them, or else self",
)
def _index_put(call: Call) -> Value:
    start, values = call.tensor(0), call.tensor(2)
    indices = indices_of(call, start)
    shape = common_shape(indices)
    if not shape:
        raise call.unsupported("one place; use torch.where with a comparison of positions")
    if len(start.shape) + len(shape) > MAX_RANK:
        raise call.unsupported(f"more than {MAX_RANK} dimensions of places and indices together")
    rest = [size for place, size in enumerate(start.shape) if place not in indices]
    lead = dimensions_before(indices)
    values = expand(values, (*rest[:lead], *shape, *rest[lead:]))
    # First the coordinates of the output, then the terms; the values do not move along the indexed dimensions.
    kept = [*range(lead), *range(lead + len(shape), len(values.shape))]
    ordered = permute(values, [*kept, *range(lead, lead + len(shape))])
    for place in sorted(indices):
        ordered = unsqueeze(ordered, place)
    over = (*start.shape, *shape)
    keys: list[tuple[Argument, int]] = []
    for place, index in indices.items():
        key = wrapped(call, index, start.shape[place], f"index_{place}")
        keys.append((view_of(expand(key, over)), place))
    return _collected(call, start, shape, keys, expand(ordered, over), call.flag(3))


def _collected(
    call: Call,
    start: Value,
    terms: tuple[int, ...],
    keys: Sequence[tuple[Argument, int]],
    source: Argument,
    is_sum: bool,
) -> Value:
    """Per position: `start` plus the sum, in order, of the source words whose keys name it, or the last of them.

    A key is an index over positions and terms, and the dimension of the positions that it names.
    """
    type_ = TensorType(call.dtype, start.shape)
    count = len(keys)
    arguments: list[Argument] = [*(index for index, _ in keys), *(Coordinate(place) for _, place in keys), source]

    def is_here(words: Sequence[Any]) -> Any:
        return reduce(and_, map(eq, words[:count], words[count:]))

    def add(total: Any, *words: Any) -> Any:
        *places, word = words
        return select(is_here(places), total + word, total)

    def keep_last(last: Any, *words: Any) -> Any:
        places, (word, before, *numbers) = words[: 2 * count], words[2 * count :]
        # Before the first term the accumulator is the word that was there.
        kept = select(reduce(or_, numbers), last, before)
        return select(is_here(places), word, kept)

    if is_sum:
        total = call.emitter.fold(type_, terms, 0, arguments, add, "sum")
        if isinstance(start, Fill) and start.word == 0:
            return total  # A sum from +0 is never -0.
        return call.emitter.map(type_.shape, type_.dtype, [start, total], lambda start, total: start + total)
    before = start
    for _ in terms:
        before = unsqueeze(before, len(before.shape))
    rank = len(start.shape)
    counters = [Coordinate(rank + place) for place in range(len(terms))]
    arguments += [expand(before, (*start.shape, *terms)), *counters]
    return call.emitter.fold(type_, terms, 0, arguments, keep_last)
