"""The loss over class labels, and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.emitter import Argument, Coordinate, Read
from pol.graph.lowering.folds import FLOAT_SUM, reduce
from pol.graph.lowering.values import NAN, Value, View, expand, integer_word, scalar, select, unsqueeze
from pol.graph.tensor_type import DType

MEAN, SUM = 1, 2


def _forward(call: Call) -> tuple[Value, ...]:
    """The negated entries at the targets times their weights, summed or divided by the weights of all counted."""
    table, target, axis = _labels(call, 0)
    ignored, reduction = call.integer(4), call.integer(3)
    shape, emitter = target.shape, call.emitter
    at_target = _view(expand(select(table, axis, 0), shape))
    entry = Read(at_target, fill=NAN, gather=(0, table.strides[axis], table.shape[axis]))
    weight = _weight(call, 2, target, shape)

    def counted(b: Builder, target: int, value: int) -> int:
        return b.emit(Op.SELECT, b.emit(Op.EQ, target, b.const(integer_word(ignored))), b.f32(0.0), value)

    def picked(b: Builder, regs: list[int]) -> int:
        loss = b.emit(Op.FNEG, regs[1])
        return counted(b, regs[0], b.emit(Op.FMUL, loss, regs[2]) if weight else loss)

    def weighed(b: Builder, regs: list[int]) -> int:
        return counted(b, regs[0], regs[1] if weight else b.f32(1.0))

    if reduction not in {MEAN, SUM}:
        # torch leaves the weight at zero here; nothing reads it.
        return emitter.map(shape, DType.F32, [target, entry, *weight], picked), scalar(0.0, DType.F32)
    losses = emitter.map(shape, DType.F32, [target, entry, *weight], picked, "losses")
    weights = emitter.map(shape, DType.F32, [target, *weight], weighed, "counted")
    axes = range(len(shape))
    total_weight = reduce(emitter, weights, axes, FLOAT_SUM, "total_weight")
    total = reduce(emitter, losses, axes, FLOAT_SUM, "" if reduction == SUM else "sum")
    if reduction == SUM:
        return total, total_weight
    return elementwise(call, [total, total_weight], lambda b, regs: b.emit(Op.FDIV, *regs)), total_weight


def _backward(call: Call) -> Value:
    """Minus the gradient times the target's weight at its coordinate, zero elsewhere; a mean divides by the weights."""
    gradient, total_weight = call.tensor(0), call.tensor(6)
    table, target, axis = _labels(call, 1)
    reduction, ignored = call.integer(4), call.integer(5)
    shape = table.shape
    if reduction == MEAN:
        share: Value = call.emitter.map(
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
    spread = unsqueeze(share, axis) if share.shape else share
    weight = _weight(call, 3, target, target.shape)
    if weight:
        # The weight of a class is read at the class coordinate: where the label is another, it does not matter.
        lead = (1,) * (len(shape) - axis - 1)
        weights = call.emitter.reshaped(call.tensor(3), (shape[axis], *lead))
        weight = [_view(expand(weights, shape))]

    def formula(b: Builder, regs: list[int]) -> int:
        here = b.emit(Op.EQ, regs[0], regs[1])
        loss = b.emit(Op.FMUL, regs[2], regs[3]) if weight else regs[2]
        value = b.emit(Op.SELECT, here, loss, b.f32(0.0))
        if 0 <= ignored < shape[axis]:
            value = b.emit(Op.SELECT, b.emit(Op.EQ, regs[0], b.const(ignored)), b.f32(0.0), value)
        return value

    labels = expand(unsqueeze(target, axis), shape)
    return call.emitter.map(shape, DType.F32, [labels, Coordinate(axis), expand(spread, shape), *weight], formula)


def _weight(call: Call, position: int, target: View, shape: tuple[int, ...]) -> list[Argument]:
    """The weights of the targets' classes as arguments that follow the targets, or nothing."""
    if call.argument(position) is None:
        return []
    weights = call.tensor(position)
    view = weights if isinstance(weights, View) else call.emitter.stored(weights)
    first = _view(expand(select(view, 0, 0), shape))
    return [Read(first, fill=NAN, gather=(0, view.strides[0], view.shape[0]))]


def _labels(call: Call, position: int) -> tuple[View, View, int]:
    """Log-probabilities of shape (classes,) or (batch, classes, ...), their targets, and the dimension of classes."""
    table, target = call.tensor(position), call.tensor(position + 1)
    axis = min(1, len(table.shape) - 1)
    others = [size for place, size in enumerate(table.shape) if place != axis]
    if target.dtype is not DType.I32 or list(target.shape) != others:
        raise call.unsupported("targets must be one class index per row of a (batch, classes, ...) tensor")
    views = [value if isinstance(value, View) else call.emitter.stored(value) for value in (table, target)]
    return views[0], views[1], axis


def _view(value: Value) -> View:
    if not isinstance(value, View):
        raise AssertionError("an expanded view is a view")
    return value


LOSSES: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.nll_loss_forward.default": _forward,
    "aten.nll_loss_backward.default": _backward,
    "aten.nll_loss2d_forward.default": _forward,
    "aten.nll_loss2d_backward.default": _backward,
}
