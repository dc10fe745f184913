"""The order of numbers: ranks by counting, so that no comparison depends on another one's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Read
from pol.graph.lowering.values import NAN, Value, View, axis_index, expand, permute, unsqueeze
from pol.graph.tensor_type import DType, TensorType

LONGEST = 2048
"""Longest dimension that is sorted: counting takes the square of the length."""


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
    rows = rows if isinstance(rows, View) else call.emitter.stored(rows)
    *lead, _ = rows.shape
    depth = len(lead)
    over = (*lead, size, size)
    own, other = expand(unsqueeze(rows, depth + 1), over), expand(unsqueeze(rows, depth), over)

    def counted(b: Builder, accumulator: int, regs: list[int]) -> int:
        mine, theirs, at, there = regs
        first, second = (mine, theirs) if is_descending else (theirs, mine)
        before = _less(b, value.dtype, first, second)
        tied = b.emit(Op.AND, _equal(b, value.dtype, mine, theirs), b.emit(Op.LTS, there, at))
        return b.emit(Op.ADD, accumulator, b.emit(Op.OR, before, tied))

    arguments = [own, other, Coordinate(depth), Coordinate(depth + 1)]
    ranks = call.emitter.fold(TensorType(DType.I32, rows.shape), (size,), 0, arguments, counted, "ranks")
    shown = (*lead, count, size)
    of_rank = expand(unsqueeze(ranks, depth), shown)

    def found(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.SELECT, b.emit(Op.EQ, regs[0], regs[1]), regs[2], accumulator)

    type_ = TensorType(DType.I32, (*lead, count))
    places = call.emitter.fold(type_, (size,), 0, [of_rank, Coordinate(depth), Coordinate(depth + 1)], found, "places")
    start = View(rows.source, rows.index, rows.type, type_.shape, rows.base, (*rows.strides[:-1], 0), rows.step_stride)
    read = Read(start, fill=NAN if value.dtype is DType.F32 else 0, gather=(0, rows.strides[-1], size))
    values = call.emitter.map(type_.shape, value.dtype, [places, read], lambda b, regs: b.emit(Op.MOV, regs[1]))
    back = [*range(place), depth, *range(place, depth)]
    shape = call.output.shape
    results = (permute(values, back), permute(places, back))
    return tuple(call.emitter.reshaped(result, shape) for result in results)


def _less(b: Builder, dtype: DType, left: int, right: int) -> int:
    """1 where left < right; every number is less than NaN."""
    if dtype is DType.I32:
        return b.emit(Op.LTS, left, right)
    missing = b.emit(Op.LTU, b.emit(Op.FEQ, right, right), b.emit(Op.FEQ, left, left))
    return b.emit(Op.OR, b.emit(Op.FLT, left, right), missing)


def _equal(b: Builder, dtype: DType, left: int, right: int) -> int:
    """1 where left = right; NaN is equal to NaN."""
    if dtype is DType.I32:
        return b.emit(Op.EQ, left, right)
    numbers = b.emit(Op.OR, b.emit(Op.FEQ, left, left), b.emit(Op.FEQ, right, right))
    return b.emit(Op.OR, b.emit(Op.FEQ, left, right), b.emit(Op.EQ, numbers, b.const(0)))


def _topk(call: Call) -> tuple[Value, ...]:
    return _sorted(call, call.integer(2, "dim", -1), call.integer(1), call.flag(3, "largest", True))


def _sort(call: Call) -> tuple[Value, ...]:
    axis, is_descending = (1, 2) if call.node.operation == "aten.sort.default" else (2, 3)
    axis = call.integer(axis, "dim", -1)
    size = call.tensor(0).shape[axis] if call.tensor(0).shape else 1
    return _sorted(call, axis, size, call.flag(is_descending, "descending"))


SELECTION: Mapping[str, Callable[[Call], tuple[Value, ...]]] = {
    "aten.topk.default": _topk,
    "aten.sort.default": _sort,
    "aten.sort.stable": _sort,
}
