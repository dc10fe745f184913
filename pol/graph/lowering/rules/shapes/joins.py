"""Joining and cutting: words move.

Parts of the result come from different tensors, or from none.
"""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.registers import R, Word, below, select
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, Emitter, NodeRead, same
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.integers import quotient_and_rest
from pol.graph.lowering.values import (
    Value,
    View,
    axis_index,
    cut,
    expand,
    float_word,
    integer_word,
    slice_range,
    unsqueeze,
    view_of,
)
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import DType

MOST_PARTS = 8
"""Parts that one node joins; more are joined in groups first."""


def placed(value: View, shape: tuple[int, ...], axis: int, start: int, fill: int = 0) -> NodeRead:
    """A read of the value at positions `start ..` of a dimension of `shape`; `fill` outside of it."""
    base = value.base - start * value.strides[axis]
    moved = View(value.source, value.index, value.type, shape, base, value.strides, value.step_stride)
    strides = [0] * (1 + len(shape))
    strides[1 + axis] = 1
    return NodeRead(moved, fill, (Bound(Affine(-start, tuple(strides)), value.shape[axis]),))


def joined(emitter: Emitter, values: Sequence[Value], axis: int, part: str = "") -> Value:
    """The values one after the other along a dimension. Every read gives the zero word outside of its part."""
    if len(values) == 1:
        return values[0]
    if len(values) > MOST_PARTS:
        size = max(-(-len(values) // MOST_PARTS), 2)
        groups = [values[start : start + size] for start in range(0, len(values), size)]
        return joined(emitter, [joined(emitter, group, axis, "group") for group in groups], axis, part)
    first = values[0]
    place = axis_index(axis, len(first.shape))
    rest = [size for position, size in enumerate(first.shape) if position != place]
    for value in values:
        others = [size for position, size in enumerate(value.shape) if position != place]
        if others != rest or len(value.shape) != len(first.shape) or value.dtype is not first.dtype:
            raise ProtocolError(f"tensors of shapes {first.shape} and {value.shape} cannot be joined")
    total = sum(value.shape[place] for value in values)
    shape = (*first.shape[:place], total, *first.shape[place + 1 :])
    reads, start = [], 0
    for value in values:
        view = emitter.view(value)
        reads.append(placed(view, shape, place, start))
        start += view.shape[place]

    return emitter.map(shape, first.dtype, reads, overlaid, part)


def overlaid(first: R, *others: R) -> R:
    """The bits of several words, of which all but one are zero."""
    bits = first.bits
    for other in others:
        bits |= other.bits
    return type(first)(bits.builder, bits.handle)


@lowers("aten.cat.default", defines="reads with bounds whose fill is 0, joined with OR; more than 8 tensors in groups")
def _cat(call: Call) -> Value:
    values = call.tensors(0)
    if any(value.dtype is not call.dtype for value in values):
        raise call.unsupported("tensors of different types; convert them explicitly")
    return joined(call.emitter, values, call.integer(1, "dim", 0))


@lowers("aten.repeat.default", defines="stride 0 along the repetitions, and a map that moves words")
def _repeat(call: Call) -> Value:
    """Every dimension cut in two: how often, and what."""
    value, counts = call.tensor(0), call.integers(1)
    lead = len(counts) - len(value.shape)
    if lead < 0 or any(count < 1 for count in counts):
        raise call.unsupported(f"{value.shape} repeated {counts} times")
    shape = (1,) * lead + value.shape
    for _ in range(lead):
        value = unsqueeze(value, 0)
    pairs: list[int] = []
    for count, size in zip(counts, shape, strict=True):
        if count > 1:
            value = unsqueeze(value, len(pairs))
            pairs.append(count)
        pairs.append(size)
    return call.emitter.reshaped(expand(value, pairs), call.output.shape)


@lowers("aten.roll.default", defines="two parts, joined as in cat")
def _roll(call: Call) -> Value:
    value = call.tensor(0)
    shifts, axes = call.integers(1), call.integers(2, "dims")
    shape = value.shape
    if not axes:
        count = 1
        for size in shape:
            count *= size
        value, axes = call.emitter.reshaped(value, (count,)), (0,)
    for shift, axis in zip(shifts, axes, strict=True):
        size = value.shape[axis_index(axis, len(value.shape))]
        start = -shift % size
        if start:
            halves = [cut(value, axis, start, size), cut(value, axis, 0, start)]
            value = joined(call.emitter, halves, axis, "roll")
    return call.emitter.reshaped(value, shape)


@lowers("aten.constant_pad_nd.default", defines="reads with bounds whose fill is the number; negative widths cut")
def _pad(call: Call) -> Value:
    value, widths, number = call.tensor(0), call.integers(1), call.number(2, "value", 0)
    fill = float_word(float(number)) if value.dtype is DType.F32 else integer_word(int(number))
    rank = len(value.shape)
    for position in range(len(widths) // 2):
        axis = rank - 1 - position
        before, after = widths[2 * position], widths[2 * position + 1]
        size = value.shape[axis]
        value = cut(value, axis, max(0, -before), size - max(0, -after))
        before, after = max(0, before), max(0, after)
        if before or after:
            shape = (*value.shape[:axis], before + value.shape[axis] + after, *value.shape[axis + 1 :])
            view = call.emitter.view(value)
            read = placed(view, shape, axis, before, fill)
            value = call.emitter.map(shape, value.dtype, [read], same, f"pad_{axis}")
    return value


@lowers("aten.slice_backward.default", defines="the gradient at its positions, else 0")
def _slice_backward(call: Call) -> Value:
    gradient, shape = call.tensor(0), call.integers(1)
    axis, step = axis_index(call.integer(2), len(shape)), call.integer(5)
    start, _ = slice_range(shape[axis], call.integer(3), call.integer(4))
    return _spread(call, gradient, shape, axis, start, step)


@lowers("aten.select_backward.default", defines="the gradient at its position, else 0")
def _select_backward(call: Call) -> Value:
    gradient, shape, index = call.tensor(0), call.integers(1), call.integer(3)
    axis = axis_index(call.integer(2), len(shape))
    return _spread(call, unsqueeze(gradient, axis), shape, axis, index % shape[axis], 1)


def _spread(call: Call, value: Value, shape: tuple[int, ...], axis: int, start: int, step: int) -> Value:
    """The value at positions start, start + step, ... of a dimension of `shape`, the zero word elsewhere."""
    view = call.emitter.view(value)
    if step == 1:
        read = placed(view, shape, axis, start)
        return call.emitter.map(shape, view.dtype, [read], same)
    index = _positions(call, shape, axis, start, step, view.shape[axis])
    return call.emitter.map(shape, view.dtype, [index, _chosen(view, shape, axis)], lambda _, word: word)


def _chosen(view: View, shape: tuple[int, ...], axis: int) -> NodeRead:
    """A read over a shape of the positions along a dimension that the first argument of the node names."""
    strides = tuple(0 if place == axis else stride for place, stride in enumerate(view.strides))
    rest = View(view.source, view.index, view.type, shape, view.base, strides, view.step_stride)
    return NodeRead(rest, gather=(0, view.strides[axis], view.shape[axis]))


def _positions(call: Call, shape: tuple[int, ...], axis: int, start: int, step: int, count: int) -> View:
    """Which position of a slice stands at each position of a dimension, or -1."""

    def formula(coordinate: Word) -> Word:
        place = coordinate - start
        quotient, rest = quotient_and_rest(place, step)
        # Before the start `place` is huge as an unsigned number, and so is its quotient.
        inside = (rest == 0) & below(quotient, count)
        inside &= below(place, 2**31)
        return select(inside, quotient, -1)

    line = call.emitter.map((shape[axis],), DType.I32, [Coordinate(0)], formula, "positions")
    value: Value = line
    for _ in shape[axis + 1 :]:
        value = unsqueeze(value, len(value.shape))
    return view_of(expand(value, shape))


@lowers(
    "aten.slice_scatter.default",
    defines="the first tensor with the second one in the place of a slice, SELECT by position",
)
def _slice_scatter(call: Call) -> Value:
    whole, part = call.tensor(0), call.tensor(1)
    axis, step = axis_index(call.integer(2, "dim", 0), len(whole.shape)), call.integer(5, "step", 1)
    size = whole.shape[axis]
    bounds = [call.argument(3, "start"), call.argument(4, "end")]
    given = [bound if type(bound) is int else default for bound, default in zip(bounds, (0, size), strict=True)]
    start, _ = slice_range(size, *given)
    if step == 1:
        return _replaced(call, whole, part, axis, start)
    shape = (*whole.shape[:axis], part.shape[axis], *whole.shape[axis + 1 :])
    view = call.emitter.view(expand(part, shape))
    index = _positions(call, whole.shape, axis, start, step, part.shape[axis])
    arguments: list[Argument] = [index, whole, _chosen(view, whole.shape, axis)]

    def formula(place: Word, outside: R, inside: R) -> R:
        return select(place < 0, outside, inside)

    return call.emitter.map(whole.shape, call.dtype, arguments, formula)


@lowers("aten.select_scatter.default", defines="the first tensor with the second one at a position, SELECT by position")
def _select_scatter(call: Call) -> Value:
    whole, part = call.tensor(0), call.tensor(1)
    axis = axis_index(call.integer(2), len(whole.shape))
    return _replaced(call, whole, unsqueeze(part, axis), axis, call.integer(3) % whole.shape[axis])


def _replaced(call: Call, whole: Value, part: Value, axis: int, start: int) -> Value:
    view = call.emitter.view(part)
    read = placed(view, whole.shape, axis, start)
    count = view.shape[axis]

    def formula(coordinate: Word, outside: R, inside: R) -> R:
        return select(below(coordinate - start, count), inside, outside)

    return call.emitter.map(whole.shape, call.dtype, [Coordinate(axis), whole, read], formula)


@lowers("aten.tril.default", defines="SELECT by the positions in the last two dimensions: 0 above a diagonal")
def _lower_triangle(call: Call) -> Value:
    return _triangle(call, is_lower=True)


@lowers("aten.triu.default", defines="SELECT by the positions in the last two dimensions: 0 below a diagonal")
def _upper_triangle(call: Call) -> Value:
    return _triangle(call, is_lower=False)


def _triangle(call: Call, is_lower: bool) -> Value:
    value, diagonal = call.tensor(0), call.integer(1, "diagonal", 0)
    rank = len(value.shape)

    def formula(row: Word, column: Word, word: R) -> R:
        limit = row + diagonal
        outside = limit < column if is_lower else column < limit
        return select(outside, 0, word)

    return call.emitter.map(value.shape, call.dtype, [Coordinate(rank - 2), Coordinate(rank - 1), value], formula)
