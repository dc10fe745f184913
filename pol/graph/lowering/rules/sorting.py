"""Order of data: ranks by counting, so that no comparison depends on another one's result."""

from __future__ import annotations

from pol.arithmetic.registers import R, Word, below, is_number, select
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, NodeRead
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import NAN, Value, View, axis_index, expand, permute, unsqueeze
from pol.graph.tensor_type import DType, TensorType

LONGEST = 2048
"""Longest dimension that is sorted: counting takes the square of the length."""
_RANKED = (
    "rank = number of words before it: greater (ascending: smaller) ones, and equal ones at earlier places; "
    "NaN is greatest; up to 2048"
)


def _sorted(call: Call, axis: int, count: int, is_descending: bool) -> tuple[Value, ...]:
    """The first `count` values in order and their places; equal values in the order of their places, NaN greatest."""
    value = call.tensor(0)
    place = axis_index(axis, len(value.shape))
    size = value.shape[place] if value.shape else 1
    if size > LONGEST:
        raise call.unsupported(f"only up to {LONGEST} numbers are sorted, not {size}")
    if not value.shape:
        value = unsqueeze(value, 0)
    order = [position for position in range(len(value.shape)) if position != place]
    rows = permute(value, [*order, place])
    rows = call.emitter.view(rows)
    *lead, _ = rows.shape
    depth = len(lead)
    over = (*lead, size, size)
    own, other = expand(unsqueeze(rows, depth + 1), over), expand(unsqueeze(rows, depth), over)

    def count_before(rank: Word, mine: R, theirs: R, at: Word, there: Word) -> Word:
        before = _less(mine, theirs) if is_descending else _less(theirs, mine)
        tied = _equal(mine, theirs) & (there < at)
        return rank + (before | tied)

    arguments = [own, other, Coordinate(depth), Coordinate(depth + 1)]
    ranks = call.emitter.fold(TensorType(DType.I32, rows.shape), (size,), 0, arguments, count_before, "ranks")
    shown = (*lead, count, size)
    of_rank = expand(unsqueeze(ranks, depth), shown)

    def found(place: Word, rank: Word, wanted: Word, here: Word) -> Word:
        return select(rank == wanted, here, place)

    type_ = TensorType(DType.I32, (*lead, count))
    places = call.emitter.fold(type_, (size,), 0, [of_rank, Coordinate(depth), Coordinate(depth + 1)], found, "places")
    start = View(rows.source, rows.index, rows.type, type_.shape, rows.base, (*rows.strides[:-1], 0), rows.step_stride)
    read = NodeRead(start, fill=NAN if value.dtype is DType.F32 else 0, gather=(0, rows.strides[-1], size))
    values = call.emitter.map(type_.shape, value.dtype, [places, read], lambda _, word: word)
    back = [*range(place), depth, *range(place, depth)]
    shape = call.output.shape
    results = (permute(values, back), permute(places, back))
    return tuple(call.emitter.reshaped(result, shape) for result in results)


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
