"""Order of data: ranks by counting, so that no comparison depends on another one's result."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from pol.arithmetic.registers import R, Word, below, is_number, select, to_float
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Emitter, NodeRead, same
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.shapes.joins import placed
from pol.graph.lowering.values import (
    NAN,
    Value,
    View,
    axis_index,
    cut,
    expand,
    float_word,
    integer_word,
    permute,
    squeeze,
    unsqueeze,
    view_of,
)
from pol.graph.tensor_type import DType, TensorType

Precedes = Callable[[Any, Any], Word]
"""1 where the first word comes before the second one."""


def merged(emitter: Emitter, values: View, places: View, precedes: Precedes, part: str) -> tuple[View, View]:
    """Stored runs (..., runs, length) and the places of their words, merged in pairs to (..., runs / 2, 2 * length).

    The length is a power of two, and the number of runs is even. Words of the first run come before equal ones.
    """
    *lead, runs, length = values.shape
    shape = (*lead, runs // 2, 2 * length)
    place = Coordinate(len(shape) - 1)

    def run(source: View, number: int, position: int, limit: int) -> NodeRead:
        """A read of words of a run by an earlier argument."""
        strides = (*source.strides[:-2], 2 * length, 0)
        moved = View(source.source, source.index, source.type, shape, source.base + number * length, strides)
        return NodeRead(moved, gather=(position, 1, limit))

    def is_first(at: Word, other: Word, mine: Any, theirs: Any) -> Word:
        """1 where the first run has a word that the second one's doesn't precede."""
        return (at >= 0) & ((other < 0) | (precedes(theirs, mine) ^ 1))

    def compared(count: View, bit: int, name: str) -> list[View | NodeRead]:
        """Positions t - 1 and k - t in the runs (-1 outside), and the words there; without a bit: i and k - i."""
        step = max(bit, 1)

        def first_at(i: Word, k: Word) -> Word:
            at = i + (step - 1)
            inside = below(at, length) & (at < k) if bit else below(at, length)
            return select(inside, at, -1)

        def second_at(i: Word, k: Word) -> Word:
            at = k - i - bit
            return select(below(at, length), at, -1)

        first = emitter.map(shape, DType.I32, [count, place], first_at, f"{name}.first")
        second = emitter.map(shape, DType.I32, [count, place], second_at, f"{name}.second")
        return [first, second, run(values, 0, 0, length), run(values, 1, 1, length)]

    count = emitter.map(shape, DType.I32, [place], lambda k: k.word(0), f"{part}.none")
    bit = length
    while bit:
        name, step = f"{part}.bit_{bit}", bit

        def more(at: Word, other: Word, mine: Any, theirs: Any, i: Word, step: int = step) -> Word:
            return select(is_first(at, other, mine, theirs), i + step, i)

        count = emitter.map(shape, DType.I32, [*compared(count, bit, name), count], more, name)
        bit //= 2

    def source(at: Word, other: Word, mine: Any, theirs: Any) -> Word:
        return select(is_first(at, other, mine, theirs), at, other + length)

    chosen = emitter.map(shape, DType.I32, compared(count, 0, f"{part}.end"), source, f"{part}.sources")
    values_after, places_after = (
        emitter.map(shape, item.dtype, [chosen, run(item, 0, 0, 2 * length)], lambda _, word: word, f"{part}.{name}")
        for item, name in ((values, "values"), (places, "places"))
    )
    return values_after, places_after


LONGEST = 2048
"""Longest dimension that is sorted by ranks: counting takes the square of the length."""
RUN = 512
"""Words that are sorted by ranks where the dimension is longer; the runs are merged."""
MOST = 1 << 20
_RANKED = (
    "rank = number of words before it: greater (ascending: smaller) ones, and equal ones at earlier places; "
    "NaN is greatest; more than 2048 in merged runs of 512"
)


def _sorted(call: Call, axis: int, count: int, is_descending: bool) -> tuple[Value, ...]:
    """The first `count` values in order and their places; equal values in the order of their places, NaN greatest."""
    value = call.tensor(0)
    place = axis_index(axis, len(value.shape))
    size = value.shape[place] if value.shape else 1
    if size > MOST:
        raise call.unsupported(f"only up to {MOST} numbers are sorted, not {size}")
    if not value.shape:
        value = unsqueeze(value, 0)
    order = [position for position in range(len(value.shape)) if position != place]
    rows = permute(value, [*order, place])
    rows = call.emitter.view(rows)
    depth = len(rows.shape) - 1
    if size > LONGEST:
        values, places = _merged(call.emitter, rows, count, is_descending)
    else:
        values, places = _ranked(call.emitter, rows, count, is_descending)
    back = [*range(place), depth, *range(place, depth)]
    shape = call.output.shape
    results = (permute(values, back), permute(places, back))
    return tuple(call.emitter.reshaped(result, shape) for result in results)


def _ranked(emitter: Emitter, rows: View, count: int, is_descending: bool) -> tuple[View, View]:
    """Along the last dimension, by ranks."""
    *lead, size = rows.shape
    depth = len(lead)
    over = (*lead, size, size)
    own, other = expand(unsqueeze(rows, depth + 1), over), expand(unsqueeze(rows, depth), over)

    def count_before(rank: Word, mine: R, theirs: R, at: Word, there: Word) -> Word:
        before = _less(mine, theirs) if is_descending else _less(theirs, mine)
        tied = _equal(mine, theirs) & (there < at)
        return rank + (before | tied)

    arguments = [own, other, Coordinate(depth), Coordinate(depth + 1)]
    ranks = emitter.fold(TensorType(DType.I32, rows.shape), (size,), 0, arguments, count_before, "ranks")
    shown = (*lead, count, size)
    of_rank = expand(unsqueeze(ranks, depth), shown)

    def found(place: Word, rank: Word, wanted: Word, here: Word) -> Word:
        return select(rank == wanted, here, place)

    type_ = TensorType(DType.I32, (*lead, count))
    places = emitter.fold(type_, (size,), 0, [of_rank, Coordinate(depth), Coordinate(depth + 1)], found, "places")
    start = View(rows.source, rows.index, rows.type, type_.shape, rows.base, (*rows.strides[:-1], 0), rows.step_stride)
    read = NodeRead(start, fill=NAN if rows.dtype is DType.F32 else 0, gather=(0, rows.strides[-1], size))
    return emitter.map(type_.shape, rows.dtype, [places, read], lambda _, word: word), places


def _merged(emitter: Emitter, rows: View, count: int, is_descending: bool) -> tuple[Value, Value]:
    """Along the last dimension: runs by ranks, then merged. What fills the last run comes after all words."""
    *lead, size = rows.shape
    runs = 1 << (-(-size // RUN) - 1).bit_length()
    if rows.dtype is DType.F32:
        last = float_word(-inf) if is_descending else NAN
    else:
        last = integer_word(-(2**31) if is_descending else 2**31 - 1)
    wide = (*lead, runs * RUN)
    filled = emitter.map(wide, rows.dtype, [placed(rows, wide, len(lead), 0, last)], same, "filled")
    cut_up = view_of(emitter.reshaped(filled, (*lead, runs, RUN)))
    values, inside = _ranked(emitter, cut_up, RUN, is_descending)
    places = emitter.map(
        inside.shape, DType.I32, [inside, Coordinate(len(lead))], lambda at, run: run * RUN + at, "places"
    )

    def precedes(first: R, second: R) -> Word:
        return _less(second, first) if is_descending else _less(first, second)

    while values.shape[-2] > 1:
        values, places = merged(emitter, values, places, precedes, f"runs_{values.shape[-2]}")
    rows_after = [cut(squeeze(item, [-2]), -1, 0, count) for item in (values, places)]
    return rows_after[0], rows_after[1]


def _less(a: R, b: R) -> Word:
    """1 where a < b; every number is less than NaN."""
    if isinstance(a, Word):
        return a < b
    is_nan_only_b = below(is_number(b), is_number(a))
    return (a < b) | is_nan_only_b


def _equal(a: R, b: R) -> Word:
    """1 where a = b; NaN is equal to NaN."""
    if isinstance(a, Word):
        return a == b
    numbers = is_number(a) | is_number(b)
    return (a == b) | (numbers == 0)


@lowers("aten.topk.default", defines=_RANKED)
def _topk(call: Call) -> tuple[Value, ...]:
    return _sorted(call, call.integer(2, "dim", -1), call.integer(1), call.flag(3, "largest", True))


@lowers("aten.sort.default", "aten.sort.stable", defines=_RANKED)
def _sort(call: Call) -> tuple[Value, ...]:
    axis, is_descending = (1, 2) if call.node.operation == "aten.sort.default" else (2, 3)
    axis = call.integer(axis, "dim", -1)
    size = call.tensor(0).shape[axis] if call.tensor(0).shape else 1
    return _sorted(call, axis, size, call.flag(is_descending, "descending"))


@lowers(
    "aten.searchsorted.Tensor",
    "aten.bucketize.Tensor",
    defines="the number of boundaries below the number (from the right: not above it); of NaN all",
)
def _place_among(call: Call) -> Value:
    is_sought_first = "bucketize" in call.node.operation
    boundaries, sought = call.tensor(int(is_sought_first)), call.tensor(int(not is_sought_first))
    right = call.flag(3, "right") or call.argument(4, "side") == "right"
    if call.argument(5, "sorter") is not None:
        raise call.unsupported("a sorter; sort the boundaries with torch.gather first")
    count = boundaries.shape[-1]
    over = (*sought.shape, count)
    rows = boundaries if len(boundaries.shape) == 1 else unsqueeze(boundaries, len(boundaries.shape) - 1)
    is_real = DType.F32 in {boundaries.dtype, sought.dtype}

    def add(total: Word, boundary: Any, number: Any) -> Word:
        if is_real:
            first, second = (to_float(word) if isinstance(word, Word) else word for word in (boundary, number))
            is_not_below: Word = first > second if right else first >= second
            return total + (is_not_below ^ 1)
        is_below: Word = boundary <= number if right else boundary < number
        return total + is_below

    wide = expand(unsqueeze(sought, len(sought.shape)), over)
    return call.emitter.fold(TensorType(DType.I32, sought.shape), (count,), 0, [expand(rows, over), wide], add)
