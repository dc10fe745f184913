"""Joining and cutting: parts of the result come from different tensors, or from none; only words are moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Emitter, Read
from pol.graph.lowering.integers import quotient_and_rest
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
)
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import DType

MOST_PARTS = 8
"""Parts that one node joins; more are joined in groups first."""


def placed(value: View, shape: tuple[int, ...], axis: int, start: int, fill: int = 0) -> Read:
    """A read of the value at positions `start ..` of a dimension of `shape`; `fill` outside of it."""
    base = value.base - start * value.strides[axis]
    moved = View(value.source, value.index, value.type, shape, base, value.strides, value.step_stride)
    strides = [0] * (1 + len(shape))
    strides[1 + axis] = 1
    return Read(moved, fill, (Bound(Affine(-start, tuple(strides)), value.shape[axis]),))


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
        view = value if isinstance(value, View) else emitter.stored(value)
        reads.append(placed(view, shape, place, start))
        start += view.shape[place]

    def formula(b: Builder, regs: list[int]) -> int:
        result = regs[0]
        for register in regs[1:]:
            result = b.emit(Op.OR, result, register)
        return result

    return emitter.map(shape, first.dtype, reads, formula, part)


def _cat(call: Call) -> Value:
    values = call.tensors(0)
    if any(value.dtype is not call.dtype for value in values):
        raise call.unsupported("tensors of different types; convert them explicitly")
    return joined(call.emitter, values, call.integer(1, "dim", 0))


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


def _pad(call: Call) -> Value:
    """The value with the padding number around it; negative widths cut."""
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
            view = value if isinstance(value, View) else call.emitter.stored(value)
            read = placed(view, shape, axis, before, fill)
            value = call.emitter.map(shape, value.dtype, [read], lambda b, regs: b.emit(Op.MOV, *regs), f"pad_{axis}")
    return value


def _slice_backward(call: Call) -> Value:
    """The gradient at the positions that the slice showed, zero elsewhere."""
    gradient, shape = call.tensor(0), call.integers(1)
    axis, step = axis_index(call.integer(2), len(shape)), call.integer(5)
    start, _ = slice_range(shape[axis], call.integer(3), call.integer(4))
    return _spread(call, gradient, shape, axis, start, step)


def _select_backward(call: Call) -> Value:
    """The gradient at one position, zero elsewhere."""
    gradient, shape, index = call.tensor(0), call.integers(1), call.integer(3)
    axis = axis_index(call.integer(2), len(shape))
    return _spread(call, unsqueeze(gradient, axis), shape, axis, index % shape[axis], 1)


def _spread(call: Call, value: Value, shape: tuple[int, ...], axis: int, start: int, step: int) -> Value:
    """The value at positions start, start + step, ... of a dimension of `shape`, the zero word elsewhere."""
    view = value if isinstance(value, View) else call.emitter.stored(value)
    if step == 1:
        read = placed(view, shape, axis, start)
        return call.emitter.map(shape, view.dtype, [read], lambda b, regs: b.emit(Op.MOV, *regs))
    index = _positions(call, shape, axis, start, step, view.shape[axis])
    strides = tuple(0 if place == axis else stride for place, stride in enumerate(view.strides))
    rest = View(view.source, view.index, view.type, shape, view.base, strides, view.step_stride)
    read = Read(rest, gather=(0, view.strides[axis], view.shape[axis]))
    return call.emitter.map(shape, view.dtype, [index, read], lambda b, regs: b.emit(Op.MOV, regs[1]))


def _positions(call: Call, shape: tuple[int, ...], axis: int, start: int, step: int, count: int) -> View:
    """Which position of a slice stands at each position of a dimension, or -1."""

    def formula(b: Builder, regs: list[int]) -> int:
        place = b.emit(Op.SUB, regs[0], b.const(integer_word(start)))
        quotient, rest = quotient_and_rest(b, place, step)
        # Before the start `place` is huge as an unsigned number, and so is its quotient.
        inside = b.emit(Op.AND, b.emit(Op.EQ, rest, b.const(0)), b.emit(Op.LTU, quotient, b.const(count)))
        inside = b.emit(Op.AND, inside, b.emit(Op.LTU, place, b.const(2**31)))
        return b.emit(Op.SELECT, inside, quotient, b.const(integer_word(-1)))

    line = call.emitter.map((shape[axis],), DType.I32, [Coordinate(0)], formula, "positions")
    value: Value = line
    for _ in shape[axis + 1 :]:
        value = unsqueeze(value, len(value.shape))
    result = expand(value, shape)
    if not isinstance(result, View):
        raise AssertionError("an expanded view is a view")
    return result


def _slice_scatter(call: Call) -> Value:
    """The first tensor with the second one in the place of a slice."""
    whole, part = call.tensor(0), call.tensor(1)
    axis, step = axis_index(call.integer(2, "dim", 0), len(whole.shape)), call.integer(5, "step", 1)
    if step != 1:
        raise call.unsupported("a slice with a step; use torch.where")
    size = whole.shape[axis]
    bounds = [call.argument(3, "start"), call.argument(4, "end")]
    given = [bound if type(bound) is int else default for bound, default in zip(bounds, (0, size), strict=True)]
    start, _ = slice_range(size, *given)
    return _replaced(call, whole, part, axis, start)


def _select_scatter(call: Call) -> Value:
    """The first tensor with the second one at one position."""
    whole, part = call.tensor(0), call.tensor(1)
    axis = axis_index(call.integer(2), len(whole.shape))
    return _replaced(call, whole, unsqueeze(part, axis), axis, call.integer(3) % whole.shape[axis])


def _replaced(call: Call, whole: Value, part: Value, axis: int, start: int) -> Value:
    view = part if isinstance(part, View) else call.emitter.stored(part)
    read = placed(view, whole.shape, axis, start)
    count = view.shape[axis]

    def formula(b: Builder, regs: list[int]) -> int:
        place = b.emit(Op.SUB, regs[0], b.const(integer_word(start)))
        return b.emit(Op.SELECT, b.emit(Op.LTU, place, b.const(count)), regs[2], regs[1])

    return call.emitter.map(whole.shape, call.dtype, [Coordinate(axis), whole, read], formula)


def _triangle(is_lower: bool) -> Callable[[Call], Value]:
    """Zero above (or below) a diagonal of the last two dimensions."""

    def lower(call: Call) -> Value:
        value, diagonal = call.tensor(0), call.integer(1, "diagonal", 0)
        rank = len(value.shape)

        def formula(b: Builder, regs: list[int]) -> int:
            row, column, word = regs
            limit = b.emit(Op.ADD, row, b.const(integer_word(diagonal)))
            outside = b.emit(Op.LTS, limit, column) if is_lower else b.emit(Op.LTS, column, limit)
            return b.emit(Op.SELECT, outside, b.const(0), word)

        return call.emitter.map(value.shape, call.dtype, [Coordinate(rank - 2), Coordinate(rank - 1), value], formula)

    return lower


JOINS: Mapping[str, Callable[[Call], Value]] = {
    "aten.cat.default": _cat,
    "aten.repeat.default": _repeat,
    "aten.roll.default": _roll,
    "aten.constant_pad_nd.default": _pad,
    "aten.slice_backward.default": _slice_backward,
    "aten.select_backward.default": _select_backward,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.select_scatter.default": _select_scatter,
    "aten.tril.default": _triangle(True),
    "aten.triu.default": _triangle(False),
}
