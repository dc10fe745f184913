"""Running sums: blocks of terms in order, then the sums of the blocks before."""

from __future__ import annotations

from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import NodeRead
from pol.graph.lowering.folds import FLOAT_SUM, INTEGER_SUM, Monoid
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.reductions import of_words
from pol.graph.lowering.values import Value, View, axis_index, cut, permute, squeeze, view_of
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import TensorType

BLOCK = 64
"""Terms that are added one after the other."""


@lowers(
    "aten.cumsum.default",
    defines="blocks of 64 terms in order, each then added to the running sum of the blocks before it",
)
def _cumulative_sum(call: Call) -> Value:
    value, monoid = of_words(call, FLOAT_SUM, INTEGER_SUM)
    axis = call.integer(1, "dim")
    if not value.shape:
        return value
    rank = len(value.shape)
    place = axis_index(axis, rank)
    order = [*(i for i in range(rank) if i != place), place]
    result = _scan(call, permute(value, order), monoid)
    return permute(result, [order.index(i) for i in range(rank)])


def _scan(call: Call, value: Value, monoid: Monoid) -> Value:
    """Running sums along the last dimension: term after term in blocks of 64, to which the blocks before are added."""
    *kept, count = value.shape
    emitter = call.emitter
    if count <= BLOCK:
        return _short_scan(call, value, monoid)
    blocks = -(-count // BLOCK)
    view = emitter.view(value)
    inside = _short_scan(call, view, monoid, blocks)
    ends = squeeze(cut(inside, -1, BLOCK - 1, BLOCK), [-1])
    before = view_of(cut(_scan(call, ends, monoid), -1, 0, blocks - 1))
    # Block b adds the sum of the blocks before it; the first one adds the neutral word.
    rank = len(kept)
    shifted = View(
        before.source, before.index, before.type, (*kept, blocks, BLOCK),
        before.base - before.strides[-1], (*before.strides, 0), before.step_stride,
    )  # fmt: skip
    bound = Bound(Affine(-1, (0, *[0] * rank, 1, 0)), blocks)
    joined = emitter.map(
        (*kept, blocks, BLOCK),
        monoid.dtype,
        [inside, NodeRead(shifted, fill=monoid.neutral, bounds=(bound,))],
        lambda inside, before: monoid.join(before, inside),
        "cumulative",
    )
    return cut(emitter.reshaped(joined, (*kept, blocks * BLOCK)), -1, 0, count)


def _short_scan(call: Call, value: Value, monoid: Monoid, blocks: int = 0) -> View:
    """Running sums of at most 64 terms, or of blocks of 64: element i folds the terms 0 .. i."""
    view = call.emitter.view(value)
    *kept, count = view.shape
    stride = view.strides[-1]
    rank = len(kept)
    width = BLOCK if blocks else count
    shape = (*kept, *([blocks] if blocks else []), width)
    middle = (BLOCK * stride,) if blocks else ()
    seen = View(
        view.source, view.index, view.type, (*shape, width), view.base,
        (*view.strides[:-1], *middle, 0, stride), view.step_stride,
    )  # fmt: skip
    zeros = [0] * (1 + rank)
    bounds = [Bound(Affine(0, (*zeros, *([0] if blocks else []), 1, -1)), width)]
    if blocks and blocks * BLOCK != count:
        bounds.append(Bound(Affine(0, (*zeros, BLOCK, 0, 1)), count))
    read = NodeRead(seen, fill=monoid.neutral, bounds=tuple(bounds))
    return call.emitter.fold(
        TensorType(monoid.dtype, shape),
        (width,),
        monoid.neutral,
        [read],
        monoid.join,
        "running",
    )
