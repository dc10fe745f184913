"""Reductions: sums, products, extremes and where they are, norms, variances."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pol.arithmetic.registers import Float, R, Word, fma, is_number, maximum, minimum, select, sqrt, to_float
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate
from pol.graph.lowering.folds import (
    ALL,
    ANY,
    FLOAT_PRODUCT,
    FLOAT_SUM,
    INTEGER_MAXIMUM,
    INTEGER_MINIMUM,
    INTEGER_PRODUCT,
    INTEGER_SUM,
    MAXIMUM,
    MINIMUM,
    Monoid,
    fold_terms,
    reduce,
    restored,
)
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.rules.folds.softmax import log_of_sum
from pol.graph.lowering.values import Value, View, axis_index, cut, expand, reshape
from pol.graph.tensor_type import DType

NOWHERE = 0x7FFFFFFF


def _axes(call: Call, position: int = 1, name: str = "dim") -> tuple[int, ...]:
    """The dimensions that an operation reduces: its argument, or all."""
    return call.integers(position, name, ()) or tuple(range(len(call.tensor(0).shape)))


def _count(value: Value, axes: Sequence[int]) -> int:
    rank = len(value.shape)
    return math.prod(value.shape[axis] for axis in {axis_index(axis, rank) for axis in axes}) if rank else 1


def _reduced(call: Call, value: Value, monoid: Monoid, part: str = "") -> Value:
    """The value reduced along the dimensions that the call names; they stay with size 1 if it says so."""
    axes = _axes(call)
    result = reduce(call.emitter, value, axes, monoid, part)
    return restored(result, axes, len(value.shape)) if call.flag(2, "keepdim") else result


def of_words(call: Call, floating: Monoid, integer: Monoid) -> tuple[Value, Monoid]:
    """The first argument as words of the result, and the monoid for them."""
    value = call.tensor(0)
    if call.dtype is value.dtype:
        return value, floating if call.dtype is DType.F32 else integer
    if call.dtype is not DType.F32:
        raise call.unsupported("a reduction of float32 numbers to integers")
    return call.emitter.map(value.shape, DType.F32, [value], to_float, "converted"), floating


@lowers("aten.sum.default", "aten.sum.dim_IntList", defines="FADD; integers: ADD, or I2F first with a float32 result")
def _sum(call: Call) -> Value:
    return _reduced(call, *of_words(call, FLOAT_SUM, INTEGER_SUM))


@lowers("aten.mean.default", "aten.mean.dim", defines="the sum, FDIV by the count; float32 only")
def _mean(call: Call) -> Value:
    value = call.tensor(0)
    n = float(_count(value, _axes(call)))
    return elementwise(call, [_reduced(call, value, FLOAT_SUM, "sum")], lambda total: total / n)


@lowers("aten.prod.default", "aten.prod.dim_int", defines="FMUL; integers: MUL, or I2F first with a float32 result")
def _product(call: Call) -> Value:
    return _reduced(call, *of_words(call, FLOAT_PRODUCT, INTEGER_PRODUCT))


def extreme_of(call: Call, value: Value) -> Monoid:
    """The maximum or the minimum of words, as the name of the operation says."""
    if "max" in call.node.operation:
        return MAXIMUM if value.dtype is DType.F32 else INTEGER_MAXIMUM
    return MINIMUM if value.dtype is DType.F32 else INTEGER_MINIMUM


@lowers("aten.amax.default", defines="FMAX from -infinity; the greatest integer", is_exact=True)
@lowers("aten.max.default", defines="FMAX from -infinity; the greatest integer")
@lowers("aten.amin.default", defines="FMIN from +infinity; the least integer", is_exact=True)
@lowers("aten.min.default", defines="FMIN from +infinity; the least integer")
def _extreme(call: Call) -> Value:
    value = call.tensor(0)
    return _reduced(call, value, extreme_of(call, value))


@lowers("aten.max.dim", defines="as amax, and the first place of the extreme, or of a NaN")
@lowers("aten.min.dim", defines="as amin, and the first place of the extreme, or of a NaN")
def _with_place(call: Call) -> tuple[Value, ...]:
    value, axis = call.tensor(0), call.integer(1)
    extreme, place = _extreme_and_place(call, value, axis)
    if call.flag(2, "keepdim"):
        return restored(extreme, [axis], len(value.shape)), restored(place, [axis], len(value.shape))
    return extreme, place


@lowers("aten.argmax.default", "aten.argmin.default", defines="the first place of the extreme, or of a NaN")
def _place(call: Call) -> Value:
    value = call.tensor(0)
    if call.argument(1, "dim") is None:
        flat = call.emitter.reshaped(value, [-1])
        place = _extreme_and_place(call, flat, 0)[1]
        return expand(place, call.output.shape) if call.output.shape else place
    axis = call.integer(1, "dim")
    place = _extreme_and_place(call, value, axis)[1]
    return restored(place, [axis], len(value.shape)) if call.flag(2, "keepdim") else place


def _extreme_and_place(call: Call, value: Value, axis: int) -> tuple[Value, Value]:
    extreme = reduce(call.emitter, value, [axis], extreme_of(call, value), "extreme")
    rank = len(value.shape)
    if not rank:
        return extreme, call.emitter.map((), DType.I32, [extreme], lambda extreme: extreme.word(0))

    def place(x: R, wanted: R, here: Word) -> Word:
        if isinstance(x, Word):
            return select(x == wanted, here, NOWHERE)
        # If there is a NaN, the extreme is NaN, which equals nothing: then the first NaN is looked for.
        found = select(is_number(x), x == wanted, 1)
        return select(found, here, NOWHERE)

    wide = expand(restored(extreme, [axis], rank), value.shape)
    places = call.emitter.map(
        value.shape, DType.I32, [value, wide, Coordinate(axis_index(axis, rank))], place, "places"
    )
    return extreme, reduce(call.emitter, places, [axis], INTEGER_MINIMUM, "place")


@lowers("aten.any.default", "aten.any.dim", "aten.any.dims", defines="OR of x != 0")
def _any(call: Call) -> Value:
    return _reduced(call, _truths(call), ANY)


@lowers("aten.all.default", "aten.all.dim", defines="AND of x != 0")
def _all(call: Call) -> Value:
    return _reduced(call, _truths(call), ALL)


def _truths(call: Call) -> Value:
    value = call.tensor(0)
    if call.torch_dtype(0) == "bool":
        return value
    return call.emitter.map(value.shape, DType.I32, [value], lambda x: x != 0, "nonzero")


def squares(call: Call, value: Value, mean: Value, axes: Sequence[int], part: str) -> View:
    """The sum along dimensions of (x - mean)^2, fused; the mean has the shape of the value."""

    def add(total: Float, x: Float, mean: Float) -> Float:
        centered = x - mean
        return fma(centered, centered, total)

    return fold_terms(call.emitter, [value, mean], axes, FLOAT_SUM, add, [0, 0], part)


def scaled(call: Call, value: Value, count: float, part: str) -> View:
    """The value divided by a number."""
    return call.emitter.map(value.shape, DType.F32, [value], lambda x: x / count, part)


def mean_along(call: Call, value: Value, axes: Sequence[int], part: str = "mean") -> View:
    """The mean along dimensions, which disappear."""
    return scaled(call, reduce(call.emitter, value, axes, FLOAT_SUM, f"{part}.sum"), _count(value, axes), part)


def _mean_from_first(call: Call, value: Value, axes: Sequence[int]) -> View:
    """x_0 + mean(x - x_0), x_0 the first term: equal terms have this mean exactly, and a deviation of exactly 0.

    As torch's running mean has it; the gradient of a deviation jumps there.
    """
    if not value.shape or not math.prod(value.shape):
        return mean_along(call, value, axes)
    first = value
    for axis in axes:
        first = cut(first, axis, 0, 1)

    def add(total: Float, x: Float, first: Float) -> Float:
        return total + (x - first)

    away = fold_terms(call.emitter, [value, expand(first, value.shape)], axes, FLOAT_SUM, add, [0, 0], "mean.sum")
    n = _count(value, axes)
    begin = reshape(first, away.shape)
    if begin is None:
        raise AssertionError("dimensions of size 1 can be left out")
    return call.emitter.map(away.shape, DType.F32, [begin, away], lambda first, away: first + away / n, "mean")


def _variance_and_mean(call: Call) -> tuple[Value, Value]:
    """The dimensions stay if the call says so."""
    value, axes = call.tensor(0), _axes(call)
    rank = len(value.shape)
    mean = _mean_from_first(call, value, axes)
    total = squares(call, value, expand(restored(mean, axes, rank), value.shape), axes, "squares")
    given = call.argument(2, "correction")
    correction = 1.0 if given is None else call.number(2, "correction")
    variance = scaled(call, total, max(_count(value, axes) - correction, 0.0), "variance")
    if call.flag(3, "keepdim"):
        return restored(variance, axes, rank), restored(mean, axes, rank)
    return variance, mean


_VARIANCE = "sum(FFMA(c, c, ...)) / (n - correction), c = x - (x_0 + sum(x - x_0) / n)"


@lowers("aten.var.correction", defines=_VARIANCE)
def _variance(call: Call) -> Value:
    return _variance_and_mean(call)[0]


lowers("aten.var_mean.correction", defines=_VARIANCE)(_variance_and_mean)


@lowers("aten.std.correction", defines="FSQRT of the variance")
def _deviation(call: Call) -> Value:
    return elementwise(call, [_variance_and_mean(call)[0]], sqrt)


@lowers(
    "aten.linalg_vector_norm.default",
    defines="FSQRT(sum(FFMA(x, x, ...))), sum(|x|), max |x|, min |x|; no other orders",
)
def _norm(call: Call) -> Value:
    value, order = call.tensor(0), call.number(1, "ord", 2)
    axes = _axes(call, 2)
    if value.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    emitter = call.emitter
    if order == 2:
        total: Value = fold_terms(emitter, [value], axes, FLOAT_SUM, lambda sum_, x: fma(x, x, sum_), [0], "squares")
        total = emitter.map(total.shape, DType.F32, [total], sqrt)
    elif order == 1:
        total = fold_terms(emitter, [value], axes, FLOAT_SUM, lambda sum_, x: sum_ + abs(x), [0])
    elif order == math.inf:
        # Magnitudes are never below 0, so that 0 is neutral for their maximum.
        monoid = Monoid(maximum, 0, DType.F32)
        total = fold_terms(emitter, [value], axes, monoid, lambda most, x: maximum(most, abs(x)), [0])
    elif order == -math.inf:
        fills = [MINIMUM.neutral]
        total = fold_terms(emitter, [value], axes, MINIMUM, lambda least, x: minimum(least, abs(x)), fills)
    else:
        raise call.unsupported(f"only the norms of order 1, 2 and infinity are defined, not {order}")
    return restored(total, axes, len(value.shape)) if call.flag(3, "keepdim") else total


@lowers("aten.logsumexp.default", defines="m + log(sum(exp(x - m))), m = max, or 0 where that is infinite")
def _logsumexp(call: Call) -> Value:
    value, axes = call.tensor(0), list(_axes(call))
    shift, logarithm = log_of_sum(call, value, axes, finite=True)
    if call.flag(2, "keepdim"):
        shift, logarithm = (restored(part, axes, len(value.shape)) for part in (shift, logarithm))
    return elementwise(call, [logarithm, shift], lambda logarithm, shift: logarithm + shift)
