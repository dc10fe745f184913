"""Overlapping parts of a dimension put back: every position is the sum of the parts that hold it."""

from __future__ import annotations

from operator import add

from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import Value, axis_index, permute
from pol.graph.lowering.windows import Cover, Grid, Window, moved, uncovered
from pol.graph.tensor_type import DType, TensorType


@lowers(
    "aten.unfold_backward.default",
    defines="FADD from +0 over the parts that hold the position, ascending; without overlap the words themselves",
)
def _unfold_backward(call: Call) -> Value:
    # y[o, t] = x[o * step + t]: a position gets g[o, t] of every part o that holds it as t.
    gradient, shape = call.floats(0), call.integers(1)
    size, step = call.integer(3), call.integer(4)
    if not shape:
        return call.emitter.reshaped(gradient, ())
    axis = axis_index(call.integer(2), len(shape))
    others = [place for place in range(len(shape)) if place != axis]
    cover = Cover.of(Window(shape[axis], size, step, 0, 1, (shape[axis] - size) // max(step, 1) + 1))
    call.shaped(0, (*shape[:axis], cover.window.outputs, *shape[axis + 1 :], size))
    grid = Grid()
    places = {place: grid.along(shape[place]) for place in others}
    q, r = grid.along(cover.quotients), grid.along(cover.window.stride)
    # Outputs descend with j: counted from the last one they ascend.
    j = grid.over(cover.terms) * -1 + (cover.terms - 1)
    places[axis] = cover.output(q, j)
    positions = [*(places[place] for place in range(len(shape))), cover.tap(r, j)]
    if cover.terms == 1:
        result = moved(call.emitter, grid.read(gradient, positions, folds=False), "")
    else:
        type_ = TensorType(DType.F32, grid.shape)
        result = call.emitter.fold(type_, grid.terms, 0, [grid.read(gradient, positions)], add)
    whole = uncovered(call.emitter, result, [shape[place] for place in others], [cover])
    order = [*others, axis]
    return permute(whole, [order.index(place) for place in range(len(shape))])
