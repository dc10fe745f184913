"""Operations whose addresses depend on data: rows of a table, and the losses over class labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pol.arithmetic.primitives import Op
from pol.arithmetic.program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.emitter import Coordinate, Read
from pol.graph.lowering.reductions import FLOAT_SUM, reduce
from pol.graph.lowering.values import (
    StepNumber,
    Value,
    View,
    axis_index,
    cut,
    expand,
    integer_word,
    permute,
    scalar,
    select,
    unsqueeze,
)
from pol.graph.types import DType, TensorType

NAN = 0x7FC00000
MEAN, SUM = 1, 2


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


def _scatter_add(call: Call) -> Value:
    """Position c along the dimension is `self` plus the sum, in order, of the source words whose index is c."""
    start, axis, source = call.tensor(0), call.integer(1), call.tensor(3)
    index = call.tensor(2)
    place = axis_index(axis, len(start.shape))
    terms = index.shape[place] if index.shape else 1
    others = [size for position, size in enumerate(start.shape) if position != place]
    if others != [size for position, size in enumerate(index.shape) if position != place] or not start.shape:
        raise call.unsupported("an index of another shape than the tensor")
    shape = call.output.shape

    def over_terms(value: Value) -> Value:
        """The dimension moved to the end, behind the coordinates of the output."""
        order = [position for position in range(len(shape)) if position != place]
        moved = permute(value, [*order, place])
        return expand(unsqueeze(moved, place), (*shape, terms))

    def formula(b: Builder, accumulator: int, regs: list[int]) -> int:
        here = b.emit(Op.EQ, regs[0], regs[1])
        return b.emit(Op.SELECT, here, b.emit(Op.FADD, accumulator, regs[2]), accumulator)

    if source.shape != index.shape:
        source = _corner(source, index.shape)
    type_ = TensorType(DType.F32, shape)
    arguments = (_view(call, over_terms(index)), Coordinate(place), over_terms(source))
    total = call.emitter.fold(type_, (terms,), 0, arguments, formula, "sum")
    return elementwise(call, [start, total], lambda b, regs: b.emit(Op.FADD, *regs))


def _corner(value: Value, shape: tuple[int, ...]) -> Value:
    """The first words of a tensor along every dimension."""
    for axis, size in enumerate(shape):
        value = cut(value, axis, 0, size)
    return value


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


def _nll_forward(call: Call) -> tuple[Value, ...]:
    """The negated entries at the targets, summed or divided by the number of targets that are not ignored."""
    table, target = _labels(call, 0)
    ignored, reduction = call.integer(4), call.integer(3)
    shape = target.shape
    entry = Read(_expanded(select(table, -1, 0), shape), fill=NAN, gather=(0, table.strides[-1], table.shape[-1]))

    def picked(b: Builder, regs: list[int]) -> int:
        out = b.emit(Op.EQ, regs[0], b.const(integer_word(ignored)))
        return b.emit(Op.SELECT, out, b.f32(0.0), b.emit(Op.FNEG, regs[1]))

    emitter = call.emitter
    if reduction not in {MEAN, SUM}:
        # torch leaves the weight at zero here; nothing reads it.
        return emitter.map(shape, DType.F32, [target, entry], picked), scalar(0.0, DType.F32)
    losses = emitter.map(shape, DType.F32, [target, entry], picked, "losses")
    weights = emitter.map(shape, DType.F32, [target], lambda b, regs: _counted(b, regs[0], ignored), "counted")
    axes = range(len(shape))
    total_weight = reduce(emitter, weights, axes, FLOAT_SUM, "total_weight")
    total = reduce(emitter, losses, axes, FLOAT_SUM, "" if reduction == SUM else "sum")
    if reduction == SUM:
        return total, total_weight
    return elementwise(call, [total, total_weight], lambda b, regs: b.emit(Op.FDIV, *regs)), total_weight


def _counted(b: Builder, target: int, ignored: int) -> int:
    return b.emit(Op.SELECT, b.emit(Op.EQ, target, b.const(integer_word(ignored))), b.f32(0.0), b.f32(1.0))


def _nll_backward(call: Call) -> Value:
    """Minus the gradient at the target's coordinate, zero elsewhere; a mean divides by the counted targets."""
    gradient, total_weight = call.tensor(0), call.tensor(6)
    table, target = _labels(call, 1)
    reduction, ignored = call.integer(4), call.integer(5)
    shape = table.shape
    if reduction == MEAN:
        share = call.emitter.map(
            (),
            DType.F32,
            [gradient, total_weight],
            lambda b, regs: b.emit(Op.FNEG, b.emit(Op.FDIV, *regs)),
            "share",
        )
    else:
        if gradient.shape not in {(), target.shape}:
            raise call.unsupported("a gradient of another shape than the targets")
        share = call.emitter.map(gradient.shape, DType.F32, [gradient], lambda b, regs: b.emit(Op.FNEG, *regs), "share")
    spread: Value = unsqueeze(share, len(share.shape)) if share.shape else share

    def formula(b: Builder, regs: list[int]) -> int:
        here = b.emit(Op.EQ, regs[0], regs[1])
        value = b.emit(Op.SELECT, here, regs[2], b.f32(0.0))
        if 0 <= ignored < shape[-1]:
            value = b.emit(Op.SELECT, b.emit(Op.EQ, regs[0], b.const(ignored)), b.f32(0.0), value)
        return value

    labels = expand(unsqueeze(target, len(target.shape)), shape)
    classes = Coordinate(len(shape) - 1)
    return call.emitter.map(shape, DType.F32, [labels, classes, expand(spread, shape)], formula)


def _labels(call: Call, position: int) -> tuple[View, View]:
    """Log-probabilities of shape (batch, classes) or (classes,), and their targets."""
    table, target = _view(call, call.tensor(position)), _view(call, call.tensor(position + 1))
    if call.argument(position + 2) is not None:
        raise call.unsupported("class weights have no definition; weigh the examples in the loss instead")
    if target.dtype is not DType.I32 or target.shape != table.shape[:-1]:
        raise call.unsupported("targets must be one class index per row of a (batch, classes) tensor")
    return table, target


def _expanded(value: Value, shape: tuple[int, ...]) -> View:
    """A broadcast view."""
    result = expand(value, shape)
    if not isinstance(result, View):
        raise AssertionError("an expanded view is a view")
    return result


INDEXED: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.index_select.default": _index_select,
    "aten.embedding.default": _embedding,
    "aten.gather.default": _gather,
    "aten.scatter_add.default": _scatter_add,
    "aten.embedding_dense_backward.default": _embedding_backward,
    "aten.nll_loss_forward.default": _nll_forward,
    "aten.nll_loss_backward.default": _nll_backward,
}
