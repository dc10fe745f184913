"""Reading at addresses from data: rows of a table, and words of a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pol.arithmetic.registers import Float, Word, below, select
from pol.graph.aten_graph import Ref
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import (
    NAN,
    StepNumber,
    Value,
    View,
    at_index,
    axis_index,
    expand,
    permute,
    unsqueeze,
    view_of,
)
from pol.graph.tensor_type import DType, TensorType


def wrapped(call: Call, index: Value, size: int, part: str) -> View:
    """The index as a node; below zero it counts from the end."""
    return call.emitter.map(index.shape, DType.I32, [index], lambda index: counted_from_the_end(index, size), part)


def counted_from_the_end(index: Word, size: Word | int) -> Word:
    """The index, or the size more where it is below zero."""
    return select(index < 0, index + size, index)


def indices_of(call: Call, table: Value) -> dict[int, Value]:
    """Which dimensions are indexed, and by what; all of one shape."""
    given = call.argument(1)
    if not isinstance(given, tuple) or len(given) > len(table.shape):
        raise call.unsupported("a list of indices is needed")
    found: dict[int, Value] = {}
    for place, item in enumerate(given):
        if isinstance(item, Ref):
            if call.types[item].dtype not in {"int64", "int32"}:
                raise call.unsupported("an index must be integers; instead of a mask use torch.where")
            found[place] = call.values[item]
    if not found:
        raise call.unsupported("no index")
    shape = _broadcast([index.shape for index in found.values()])
    return {place: expand(index, shape) for place, index in found.items()}


def common_shape(indices: Mapping[int, Value]) -> tuple[int, ...]:
    """The shape of all indices."""
    return next(iter(indices.values())).shape


def dimensions_before(indices: Mapping[int, Value]) -> int:
    """How many other dimensions come before those of the indices: none if something stands between the indexed ones."""
    places = sorted(indices)
    return places[0] if places == list(range(places[0], places[0] + len(places))) else 0


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


_ROWS = "rows by index; NaN (integers: 0) where there is none"


def _rows(call: Call, table: Value, axis: int, indices: Value) -> Value:
    """The table with dimension `axis` replaced by the dimensions of `indices`."""
    source = call.emitter.view(table)
    place = axis_index(axis, len(source.shape))
    if isinstance(indices, StepNumber):
        row = view_of(at_index(source, place, 0))
        moved = unsqueeze(replace(row, step_stride=row.step_stride + source.strides[place]), place)
        return expand(moved, call.output.shape)
    before, after = source.shape[:place], source.shape[place + 1 :]
    shape = (*before, *indices.shape, *after)
    index: Value = indices
    for _ in after:
        index = unsqueeze(index, len(index.shape))
    rest: Value = at_index(source, place, 0)
    for _ in indices.shape:
        rest = unsqueeze(rest, place)
    return _gathered(call, shape, expand(call.emitter.view(index), shape), expand(rest, shape), source, place)


def _gathered(call: Call, shape: tuple[int, ...], index: Value, rest: Value, source: View, place: int) -> Value:
    """The words of `rest`, moved along dimension `place` of `source` by the words of `index`."""
    fill = NAN if source.dtype is DType.F32 else 0
    read = NodeRead(view_of(rest), fill=fill, gather=(0, source.strides[place], source.shape[place]))
    return call.emitter.map(shape, source.dtype, [view_of(index), read], lambda _, word: word)


@lowers("aten.index_select.default", defines=_ROWS, is_exact=True)
def _index_select(call: Call) -> Value:
    return _rows(call, call.tensor(0), call.integer(1), call.tensor(2))


@lowers("aten.embedding.default", defines=_ROWS, is_exact=True)
def _embedding(call: Call) -> Value:
    return _rows(call, call.tensor(0), 0, call.tensor(1))


@lowers("aten.gather.default", defines="words by index; NaN (integers: 0) where there is none", is_exact=True)
def _gather(call: Call) -> Value:
    source, axis, index = call.emitter.view(call.tensor(0)), call.integer(1), call.emitter.view(call.tensor(2))
    place = axis_index(axis, len(source.shape))
    if any(index.shape[d] > source.shape[d] for d in range(len(source.shape)) if d != place):
        raise call.unsupported("the index is larger than the tensor")
    strides = tuple(0 if d == place else stride for d, stride in enumerate(source.strides))
    return _gathered(call, index.shape, index, replace(source, shape=index.shape, strides=strides), source, place)


@lowers(
    "aten.index.Tensor", defines="words at the indices, below zero from the end; NaN (integers: 0) where there are none"
)
def _index(call: Call) -> Value:
    table = call.emitter.view(call.tensor(0))
    indices = indices_of(call, table)
    if any(table.strides[place] < 0 for place in indices):
        table = call.emitter.stored(table)
    shape = common_shape(indices)
    moves, limit = _offsets(call, table, indices, shape)
    lead = dimensions_before(indices)
    kept = [place for place in range(len(table.shape)) if place not in indices]
    sizes = [table.shape[place] for place in kept]
    strides = [table.strides[place] for place in kept]
    over = (*sizes[:lead], *shape, *sizes[lead:])
    spread: Value = moves
    for _ in sizes[lead:]:
        spread = unsqueeze(spread, len(spread.shape))
    rest = (*strides[:lead], *[0] * len(shape), *strides[lead:])
    start = View(table.source, table.index, table.type, over, table.base, rest, table.step_stride)
    read = NodeRead(start, fill=NAN if table.dtype is DType.F32 else 0, gather=(0, 1, limit))
    arguments: list[Argument] = [view_of(expand(spread, over)), read]
    return call.emitter.map(over, table.dtype, arguments, lambda _, word: word)


def _offsets(call: Call, table: View, indices: Mapping[int, Value], shape: tuple[int, ...]) -> tuple[View, int]:
    """How far every place is from the first one in words, NOWHERE where there is none, and the limit of that."""
    places = list(indices)

    def formula(*indices: Word) -> Word:
        total = outside = indices[0].word(0)
        for place, index in zip(places, indices, strict=True):
            size = index.word(table.shape[place])
            at = counted_from_the_end(index, size)
            outside |= below(at, size) == 0
            total += at * table.strides[place]
        return select(outside, -1, total)

    arguments = [expand(index, shape) for index in indices.values()]
    limit = 1 + sum((table.shape[place] - 1) * table.strides[place] for place in places)
    return call.emitter.map(shape, DType.I32, arguments, formula, "offsets"), limit


@lowers(
    "aten.embedding_dense_backward.default",
    defines="sum of the gradients of the tokens of a row, ascending; no scale_grad_by_freq",
)
def _embedding_backward(call: Call) -> Value:
    # y[token] = table[index[token]]: a row gets the g of every token whose index it is.
    gradient, index = call.tensor(0), call.tensor(1)
    rows, padding = call.integer(2), call.integer(3)
    if call.flag(4):
        raise call.unsupported("scale_grad_by_freq has no definition")
    width = gradient.shape[-1]
    count = math.prod(index.shape)
    tokens = expand(unsqueeze(call.emitter.reshaped(call.emitter.view(index), (1, count)), 1), (rows, width, count))
    flat = call.emitter.reshaped(call.emitter.view(gradient), (1, count, width))
    parts = expand(permute(flat, (0, 2, 1)), (rows, width, count))

    def add(total: Float, token: Word, row: Word, g: Float) -> Float:
        added = select(token == row, total + g, total)
        return select(row == padding, total, added) if 0 <= padding < rows else added

    type_ = TensorType(DType.F32, (rows, width))
    return call.emitter.fold(type_, (count,), 0, [tokens, Coordinate(0), parts], add)
