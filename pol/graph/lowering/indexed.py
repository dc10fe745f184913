"""Operations that read at addresses from data: rows of a table, and words of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Read
from pol.graph.lowering.values import (
    NAN,
    StepNumber,
    Value,
    View,
    axis_index,
    expand,
    select,
    unsqueeze,
)
from pol.graph.tensor_type import DType, TensorType


def _view(call: Call, value: Value) -> View:
    return value if isinstance(value, View) else call.emitter.stored(value)


def _rows(call: Call, table: Value, axis: int, indices: Value) -> Value:
    """The table with dimension `axis` replaced by the dimensions of `indices`."""
    source = _view(call, table)
    place = axis_index(axis, len(source.shape))
    if isinstance(indices, StepNumber):
        row = select(source, place, 0)
        if not isinstance(row, View):
            raise AssertionError("a part of a view is a view")
        moved = unsqueeze(replace(row, step_stride=row.step_stride + source.strides[place]), place)
        return expand(moved, call.output.shape)
    before, after = source.shape[:place], source.shape[place + 1 :]
    shape = (*before, *indices.shape, *after)
    index: Value = indices
    for _ in after:
        index = unsqueeze(index, len(index.shape))
    rest: Value = select(source, place, 0)
    for _ in indices.shape:
        rest = unsqueeze(rest, place)
    return _gathered(call, shape, expand(_view(call, index), shape), expand(rest, shape), source, place)


def _gathered(call: Call, shape: tuple[int, ...], index: Value, rest: Value, source: View, place: int) -> Value:
    """The words of `rest`, moved along dimension `place` of `source` by the words of `index`."""
    if not isinstance(index, View) or not isinstance(rest, View):
        raise AssertionError("an expanded view is a view")
    fill = NAN if source.dtype is DType.F32 else 0
    read = Read(rest, fill=fill, gather=(0, source.strides[place], source.shape[place]))
    return call.emitter.map(shape, source.dtype, [index, read], lambda b, regs: b.emit(Op.MOV, regs[1]))


def _index_select(call: Call) -> Value:
    return _rows(call, call.tensor(0), call.integer(1), call.tensor(2))


def _embedding(call: Call) -> Value:
    return _rows(call, call.tensor(0), 0, call.tensor(1))


def _gather(call: Call) -> Value:
    source, axis, index = _view(call, call.tensor(0)), call.integer(1), _view(call, call.tensor(2))
    place = axis_index(axis, len(source.shape))
    if any(index.shape[d] > source.shape[d] for d in range(len(source.shape)) if d != place):
        raise call.unsupported("the index is larger than the tensor")
    strides = tuple(0 if d == place else stride for d, stride in enumerate(source.strides))
    return _gathered(call, index.shape, index, replace(source, shape=index.shape, strides=strides), source, place)


def _embedding_backward(call: Call) -> Value:
    """Row r is the sum, in order, of the gradients of the tokens whose index is r."""
    gradient, index = call.tensor(0), call.tensor(1)
    rows, padding = call.integer(2), call.integer(3)
    if call.flag(4):
        raise call.unsupported("scale_grad_by_freq has no definition")
    width = gradient.shape[-1]
    count = 1
    for size in index.shape:
        count *= size
    tokens = expand(unsqueeze(call.emitter.reshaped(_view(call, index), (1, count)), 1), (rows, width, count))
    flat = call.emitter.reshaped(_view(call, gradient), (1, count, width))
    parts = expand(_transposed(flat), (rows, width, count))

    def formula(b: Builder, accumulator: int, regs: list[int]) -> int:
        here = b.emit(Op.EQ, regs[0], regs[1])
        total = b.emit(Op.SELECT, here, b.emit(Op.FADD, accumulator, regs[2]), accumulator)
        if 0 <= padding < rows:
            total = b.emit(Op.SELECT, b.emit(Op.EQ, regs[1], b.const(padding)), accumulator, total)
        return total

    type_ = TensorType(DType.F32, (rows, width))
    return call.emitter.fold(type_, (count,), 0, [tokens, Coordinate(0), parts], formula)


def _transposed(value: Value) -> Value:
    if not isinstance(value, View):
        raise AssertionError("a reshaped view is a view")
    first, second, third = value.shape
    return replace(value, shape=(first, third, second), strides=(value.strides[0], value.strides[2], value.strides[1]))


INDEXED: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.index_select.default": _index_select,
    "aten.embedding.default": _embedding,
    "aten.gather.default": _gather,
    "aten.embedding_dense_backward.default": _embedding_backward,
}
