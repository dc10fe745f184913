"""Running sums, products and extremes: blocks of terms in order, then those of the blocks before."""

from __future__ import annotations

from pol.arithmetic.functions import exp, log1p
from pol.arithmetic.registers import Float, R, Word, is_number, maximum, minimum, select
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, NodeRead
from pol.graph.lowering.folds import (
    FLOAT_PRODUCT,
    FLOAT_SUM,
    INTEGER_MAXIMUM,
    INTEGER_PRODUCT,
    INTEGER_SUM,
    MAXIMUM,
    Monoid,
)
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.folds.reductions import extreme_of, of_words
from pol.graph.lowering.values import Value, View, axis_index, cut, permute, squeeze, view_of
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import DType, TensorType

BLOCK = 64
"""Terms that are added one after the other."""


@lowers(
    "aten.cumsum.default",
    defines="blocks of 64 terms in order, each then added to the running sum of the blocks before it",
)
def _cumulative_sum(call: Call) -> Value:
    return _along(call, *of_words(call, FLOAT_SUM, INTEGER_SUM))


@lowers("aten.cumprod.default", defines="as cumsum, with FMUL; integers: MUL")
def _cumulative_product(call: Call) -> Value:
    return _along(call, *of_words(call, FLOAT_PRODUCT, INTEGER_PRODUCT))


@lowers("aten.logcumsumexp.default", defines="as cumsum, with m + log1p(exp(l - m)), m = FMAX, l = FMIN")
def _log_of_cumulative_sum(call: Call) -> Value:
    value = call.tensor(0)
    if value.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    return _along(call, value, _LOG_SUM)


def _log_of_sum(a: Float, b: Float) -> Float:
    """log(e^a + e^b)."""
    most, least = maximum(a, b), minimum(a, b)
    # Equal infinities have no difference.
    apart = select(most == least, 0.0, least - most)
    return most + log1p(exp(apart))


_LOG_SUM = Monoid(_log_of_sum, MAXIMUM.neutral, DType.F32)


@lowers("aten.cummax.default", defines="as cumsum, with FMAX, and the last place of the maximum so far", is_exact=True)
@lowers("aten.cummin.default", defines="as cumsum, with FMIN, and the last place of the minimum so far", is_exact=True)
def _extremes(call: Call) -> tuple[Value, ...]:
    """The running extreme, and the place where it was met last; a NaN stays."""
    value = call.tensor(0)
    result = _along(call, value, extreme_of(call, value))
    if not value.shape:
        return result, call.emitter.map((), DType.I32, [value], lambda x: x.word(0), "place")

    def met(x: R, extreme: R, here: Word) -> Word:
        is_met = x == extreme
        if isinstance(x, Float):
            is_met = is_met | (is_number(x) ^ 1)
        return select(is_met, here, 0)

    place = Coordinate(axis_index(call.integer(1, "dim"), len(value.shape)))
    places = call.emitter.map(value.shape, DType.I32, [value, result, place], met, "met")
    return result, _along(call, places, INTEGER_MAXIMUM)


def _along(call: Call, value: Value, monoid: Monoid) -> Value:
    """Running values of a monoid along the dimension that the call names."""
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
    return call.emitter.fold(TensorType(monoid.dtype, shape), (width,), monoid.neutral, [read], monoid.join, "running")
