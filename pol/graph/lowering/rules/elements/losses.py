"""Losses over class labels."""

from __future__ import annotations

from operator import neg

from pol.arithmetic.registers import Float, Word, select
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.folds import FLOAT_SUM, reduce
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import NAN, Value, View, at_index, expand, scalar, unsqueeze, view_of
from pol.graph.tensor_type import DType

MEAN, SUM = 1, 2


@lowers(
    *("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default"),
    defines="one label per row; class weights multiply; reductions none, mean (FDIV by the sum of weights), sum",
)
def _forward(call: Call) -> tuple[Value, ...]:
    """The negated entries at the targets times their weights, summed or divided by the weights of all counted."""
    table, target, axis = _labels(call, 0)
    ignored, reduction = call.integer(4), call.integer(3)
    shape, emitter = target.shape, call.emitter
    at_target = view_of(expand(at_index(table, axis, 0), shape))
    entry = NodeRead(at_target, fill=NAN, gather=(0, table.strides[axis], table.shape[axis]))
    weight = _weight(call, 2, target, shape)

    def picked(target: Word, entry: Float, weight: Float | None = None) -> Float:
        loss = -entry if weight is None else -entry * weight
        return select(target == ignored, 0.0, loss)

    def weighed(target: Word, weight: Float | None = None) -> Float:
        counted = target.real(1.0) if weight is None else weight
        return select(target == ignored, 0.0, counted)

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
    return elementwise(call, [total, total_weight], lambda total, weight: total / weight), total_weight


@lowers(
    *("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default"),
    defines="minus the gradient (over the sum of weights) times the weight at the label, else 0",
)
def _backward(call: Call) -> Value:
    gradient, total_weight = call.tensor(0), call.tensor(6)
    table, target, axis = _labels(call, 1)
    reduction, ignored = call.integer(4), call.integer(5)
    shape = table.shape
    if reduction == MEAN:
        share: Value = call.emitter.map(
            (), DType.F32, [gradient, total_weight], lambda g, total_weight: -(g / total_weight), "share"
        )
    else:
        if gradient.shape not in {(), target.shape}:
            raise call.unsupported("a gradient of another shape than the targets")
        share = call.emitter.map(gradient.shape, DType.F32, [gradient], neg, "share")
    spread = unsqueeze(share, axis) if share.shape else share
    weight = _weight(call, 3, target, target.shape)
    if weight:
        # The weight of a class is read at the class coordinate: where the label is another, it does not matter.
        lead = (1,) * (len(shape) - axis - 1)
        weights = call.emitter.reshaped(call.tensor(3), (shape[axis], *lead))
        weight = [view_of(expand(weights, shape))]

    # The loss of a row is -x[label] * w[label], over the sum of the weights for a mean:
    # its gradient is -g * w (over that sum) at the label, and 0 at other classes and in ignored rows.
    def formula(label: Word, here: Word, share: Float, weight: Float | None = None) -> Float:
        is_here = label == here
        value = select(is_here, share if weight is None else share * weight, 0.0)
        return select(label == ignored, 0.0, value) if 0 <= ignored < shape[axis] else value

    labels = expand(unsqueeze(target, axis), shape)
    return call.emitter.map(shape, DType.F32, [labels, Coordinate(axis), expand(spread, shape), *weight], formula)


def _weight(call: Call, position: int, target: View, shape: tuple[int, ...]) -> list[Argument]:
    """The weights of the targets' classes as arguments that follow the targets, or nothing."""
    if call.argument(position) is None:
        return []
    view = call.emitter.view(call.tensor(position))
    first = view_of(expand(at_index(view, 0, 0), shape))
    return [NodeRead(first, fill=NAN, gather=(0, view.strides[0], view.shape[0]))]


def _labels(call: Call, position: int) -> tuple[View, View, int]:
    """Log-probabilities of shape (classes,) or (batch, classes, ...), their targets, and the dimension of classes."""
    table, target = call.tensor(position), call.tensor(position + 1)
    axis = min(1, len(table.shape) - 1)
    others = [size for place, size in enumerate(table.shape) if place != axis]
    if target.dtype is not DType.I32 or list(target.shape) != others:
        raise call.unsupported("targets must be one class index per row of a (batch, classes, ...) tensor")
    return call.emitter.view(table), call.emitter.view(target), axis
