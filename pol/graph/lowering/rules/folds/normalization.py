"""Normalization: means first, then centered squares, then one map.

Names in the formulas: x the input, g the gradient of the output, n how many terms a mean has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pol.arithmetic.functions import rsqrt
from pol.arithmetic.registers import Float, fma
from pol.errors import ProtocolError
from pol.graph.aten_graph import Ref
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Formula
from pol.graph.lowering.folds import FLOAT_SUM, fold_terms, reduce, restored
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.folds.reductions import mean_along, scaled, squares
from pol.graph.lowering.values import Fill, Value, View, expand, float_word, reshape, unsqueeze
from pol.graph.tensor_type import DType


@dataclass(frozen=True)
class _Statistics:
    """Mean, sum of centered squares and 1 / sqrt(variance + eps), without the reduced dimensions."""

    mean: View
    squares: View
    rstd: View


def _ones(*shape: int) -> Fill:
    """What stands for a weight that is not there; a product with it is exact."""
    return Fill(float_word(1.0), DType.F32, shape)


def _map(call: Call, shape: Sequence[int], values: Sequence[Value], formula: Formula, part: str = "") -> View:
    whole = tuple(shape)
    return call.emitter.map(whole, DType.F32, [expand(value, whole) for value in values], formula, part)


def _folded(call: Call, values: Sequence[Value], axes: Sequence[int], add: Formula, part: str) -> View:
    """A sum whose terms are zero where all operands are."""
    shape = values[0].shape
    operands = [expand(value, shape) for value in values]
    return fold_terms(call.emitter, operands, axes, FLOAT_SUM, add, [0] * len(values), part)


def _add_product(total: Float, a: Float, b: Float) -> Float:
    return fma(a, b, total)


def _add_centered(total: Float, g: Float, x: Float, mean: Float) -> Float:
    return fma(g, x - mean, total)


def _slope(n: int) -> Formula:
    """How the variance takes part in a gradient: rstd^2 * sum(g * (x - mean)) / n."""

    def formula(products: Float, rstd: Float) -> Float:
        return rstd * ((rstd * products) / n)

    return formula


def _product(a: Float, b: Float) -> Float:
    return a * b


def _terms(value: Value, axes: Sequence[int]) -> int:
    """n, for means along dimensions."""
    return math.prod(value.shape[axis] for axis in axes)


def _statistics(call: Call, value: Value, axes: Sequence[int], epsilon: float) -> _Statistics:
    rank = len(value.shape)
    n = _terms(value, axes)
    mean = mean_along(call, value, axes)
    total = squares(call, value, expand(restored(mean, axes, rank), value.shape), axes, "squares")

    def rstd(squares: Float) -> Float:
        return rsqrt(squares / n + epsilon)

    return _Statistics(mean, total, _map(call, total.shape, [total], rstd, "rstd"))


def _optional(call: Call, position: int, shape: Sequence[int]) -> Value | None:
    return call.shaped(position, shape) if isinstance(call.argument(position), Ref) else None


def _small(value: View, shape: Sequence[int]) -> View:
    """A stored tensor under another shape of as many elements."""
    seen = reshape(value, shape)
    if not isinstance(seen, View):
        raise AssertionError("a stored tensor can have any shape")
    return seen


def _normalized(call: Call, value: Value, mean: Value, rstd: Value, weight: Value | None, bias: Value | None) -> View:
    """((x - mean) * rstd) * weight + bias, the last two fused."""

    def formula(x: Float, mean: Float, rstd: Float, *affine: Float) -> Float:
        result = (x - mean) * rstd
        if weight is not None and bias is not None:
            return fma(result, *affine)
        if weight is not None:
            return result * affine[0]
        return result if bias is None else result + affine[0]

    return _map(call, value.shape, [value, mean, rstd, *(part for part in (weight, bias) if part is not None)], formula)


@lowers(
    "aten.native_layer_norm.default",
    defines="FFMA((x - mean) * rstd, weight, bias); rstd = rsqrt(sum(FFMA(c, c, ...)) / n + eps), c = x - mean",
)
def _layer_norm(call: Call) -> tuple[Value, ...]:
    value, normalized = call.tensor(0), call.integers(1)
    rank = len(value.shape)
    axes = tuple(range(rank - len(normalized), rank))
    if not normalized or value.shape[rank - len(normalized) :] != normalized:
        raise ProtocolError(f"{normalized} are not the last dimensions of {value.shape}")
    found = _statistics(call, value, axes, call.number(4))
    mean, rstd = restored(found.mean, axes, rank), restored(found.rstd, axes, rank)
    affine = (_optional(call, position, normalized) for position in (2, 3))
    return _normalized(call, value, mean, rstd, *affine), mean, rstd


@lowers(
    "aten.native_layer_norm_backward.default",
    defines="h = g * weight, c = x - mean: rstd * (h - FFMA(c, rstd * (rstd * sum(FFMA(h, c, ...)) / n), sum(h) / n)); "
    "sum(FFMA(g, c * rstd, ...)); sum(g)",
)
def _layer_norm_backward(call: Call) -> tuple[Value, ...]:
    value, normalized = call.tensor(1), call.integers(2)
    gradient, weight = call.shaped(0, value.shape), _optional(call, 5, normalized) or _ones(*normalized)
    rank = len(value.shape)
    axes, rows = tuple(range(rank - len(normalized), rank)), tuple(range(rank - len(normalized)))
    of_rows = (*value.shape[: len(rows)], *[1] * len(axes))
    mean, rstd = call.shaped(3, of_rows), call.shaped(4, of_rows)
    inner = _input_gradient(call, gradient, value, mean, rstd, weight, axes)

    def add(total: Float, g: Float, x: Float, mean: Float, rstd: Float) -> Float:
        return fma(g, (x - mean) * rstd, total)

    by_weight = _folded(call, [gradient, value, mean, rstd], rows, add, "weight")
    return call.chosen((inner, by_weight, reduce(call.emitter, gradient, rows, FLOAT_SUM, "bias")), 7)


def _input_gradient(
    call: Call, gradient: Value, value: Value, mean: Value, rstd: Value, weight: Value, axes: Sequence[int]
) -> View:
    """The gradient of a normalized tensor whose statistics are over `axes`; all operands broadcast to its shape."""
    rank, shape = len(value.shape), value.shape
    n = _terms(value, axes)
    total = scaled(call, _folded(call, [gradient, weight], axes, _add_product, "sum"), n, "mean_gradient")

    def add(total: Float, g: Float, x: Float, mean: Float, weight: Float) -> Float:
        return fma(g * weight, x - mean, total)

    products = restored(_folded(call, [gradient, value, mean, weight], axes, add, "product"), axes, rank)
    slopes = _map(call, products.shape, [products, rstd], _slope(n), "slope")

    # x moves its own output by rstd, all others by the mean: -1 / n each, and by the variance: -(x - mean) * slope,
    # so that with h = g * w the gradient is rstd * (h - mean(h) - (x - mean) * rstd^2 * mean(h * (x - mean))).
    def formula(g: Float, x: Float, mean: Float, rstd: Float, slope: Float, mean_g: Float, w: Float) -> Float:
        return rstd * (g * w - fma(x - mean, slope, mean_g))

    return _map(call, shape, [gradient, value, mean, rstd, slopes, restored(total, axes, rank), weight], formula)


def _channel(value: Value, rank: int) -> Value:
    """A tensor over the second dimension of `rank` dimensions."""
    for _ in range(rank - 2):
        value = unsqueeze(value, len(value.shape))
    return value


@lowers(
    "aten._native_batch_norm_legit_functional.default",
    defines="as layer norm, over all but the second dimension, in training; running = FFMA(new, momentum, old * (1 - "
    "momentum)) with the variance over n - 1",
)
def _batch_norm(call: Call) -> tuple[Value, ...]:
    found, result = _of_batch(call, 5)
    momentum, value = call.number(6), call.tensor(0)
    n = _terms(value, (0, *range(2, len(value.shape))))

    def running_mean(old: Float, mean: Float) -> Float:
        share = old.real(momentum)
        return fma(mean, share, old * (1 - momentum))

    def running_variance(old: Float, squares: Float) -> Float:
        return running_mean(old, squares / (n - 1))

    shape = found.mean.shape
    return (
        result,
        found.mean,
        found.rstd,
        _map(call, shape, [call.shaped(3, shape), found.mean], running_mean, "running_mean"),
        _map(call, shape, [call.shaped(4, shape), found.squares], running_variance, "running_variance"),
    )


@lowers("aten._native_batch_norm_legit.no_stats", defines="the same without running statistics")
def _batch_norm_without_running(call: Call) -> tuple[Value, ...]:
    found, result = _of_batch(call, 3)
    return result, found.mean, found.rstd


def _of_batch(call: Call, first: int) -> tuple[_Statistics, View]:
    """Statistics of the batch and what is normalized by them; `first` is the place of training, momentum, eps."""
    value = call.tensor(0)
    if not call.flag(first) or len(value.shape) < 2:
        raise call.unsupported("only statistics of the batch are taken here")
    rank = len(value.shape)
    found = _statistics(call, value, (0, *range(2, rank)), call.number(first + 2))
    affine = (_optional(call, position, value.shape[1:2]) for position in (1, 2))
    parts = [None if part is None else _channel(part, rank) for part in affine]
    return found, _normalized(call, value, _channel(found.mean, rank), _channel(found.rstd, rank), *parts)


@lowers(
    "aten.native_batch_norm_backward.default",
    defines="w = rstd * sum(FFMA(g, c, ...)): (weight * rstd) * (g - FFMA(c, rstd * (w / n), sum(g) / n)); w; sum(g)",
)
def _batch_norm_backward(call: Call) -> tuple[Value, ...]:
    value, channels = call.tensor(1), call.tensor(1).shape[1:2]
    gradient, weight = call.shaped(0, value.shape), _optional(call, 2, channels)
    if not call.flag(7):
        raise call.unsupported("only statistics of the batch are differentiated here")
    rank = len(value.shape)
    axes = (0, *range(2, rank))
    n = _terms(value, axes)
    rstd = call.shaped(6, channels)
    mean = _channel(call.shaped(5, channels), rank)
    total = reduce(call.emitter, gradient, axes, FLOAT_SUM, "bias")
    products = _folded(call, [gradient, value, mean], axes, _add_centered, "product")
    shape = products.shape
    by_weight = _map(call, shape, [products, rstd], _product, "weight")

    def slope(by_weight: Float, rstd: Float) -> Float:
        return rstd * (by_weight / n)

    slopes = _map(call, shape, [by_weight, rstd], slope, "slope")
    means = scaled(call, total, n, "mean_gradient")
    factor = rstd if weight is None else _map(call, shape, [weight, rstd], _product, "factor")

    # As for layer norm. The weight is one for all terms of a sum, so it stands before them:
    # weight * rstd * (g - mean(g) - (x - mean) * rstd^2 * mean(g * (x - mean))).
    def formula(g: Float, x: Float, mean: Float, slope: Float, mean_g: Float, factor: Float) -> Float:
        return factor * (g - fma(x - mean, slope, mean_g))

    parts = [_channel(part, rank) for part in (slopes, means, factor)]
    return call.chosen((_map(call, value.shape, [gradient, value, mean, *parts], formula), by_weight, total), 9)


def _group_sizes(call: Call, first: int) -> tuple[int, int, int, int]:
    """Samples, groups, channels in a group, positions."""
    samples, channels, positions, groups = (call.integer(first + i) for i in range(4))
    if min(samples, channels, positions, groups) < 1 or channels % groups:
        raise ProtocolError(f"{channels} channels in {groups} groups")
    return samples, groups, channels // groups, positions


def _by_channel(call: Call, value: Value, groups: int) -> Value:
    """A tensor over channels as (groups, channels of a group, 1)."""
    return call.emitter.reshaped(value, (groups, math.prod(value.shape) // groups, 1))


@lowers("aten.native_group_norm.default", defines="as layer norm, over the channels and positions of a group")
def _group_norm(call: Call) -> tuple[Value, ...]:
    sizes = _group_sizes(call, 3)
    value = call.emitter.reshaped(call.tensor(0), sizes)
    found = _statistics(call, value, (2, 3), call.number(7))
    mean, rstd = (restored(part, (2, 3), 4) for part in (found.mean, found.rstd))
    affine = (_optional(call, position, (sizes[1] * sizes[2],)) for position in (1, 2))
    parts = [None if part is None else _by_channel(call, part, sizes[1]) for part in affine]
    return _small(_normalized(call, value, mean, rstd, *parts), call.output.shape), found.mean, found.rstd


@lowers(
    "aten.native_group_norm_backward.default",
    defines="as for layer norm; sums over positions first, then over channels",
)
def _group_norm_backward(call: Call) -> tuple[Value, ...]:
    """Sums over positions serve the weight and the groups."""
    sizes = _group_sizes(call, 5)
    samples, groups, channels, positions = sizes
    gradient, value = (call.emitter.reshaped(call.tensor(position), sizes) for position in (0, 1))
    mean, rstd = (call.emitter.reshaped(call.tensor(position), (samples, groups, 1, 1)) for position in (2, 3))
    weight = _optional(call, 4, (groups * channels,)) or _ones(groups * channels)
    factor = _by_channel(call, weight, groups)
    sums = restored(reduce(call.emitter, gradient, (3,), FLOAT_SUM, "sum"), (3,), 4)
    products = restored(_folded(call, [gradient, value, mean], (3,), _add_centered, "product"), (3,), 4)
    n = channels * positions
    of_group = restored(_folded(call, [sums, factor], (2,), _add_product, "group_sum"), (2,), 4)
    of_product = restored(_folded(call, [products, factor], (2,), _add_product, "group_product"), (2,), 4)
    means = _map(call, of_group.shape, [of_group], lambda total: total / n, "mean_gradient")
    slopes = _map(call, of_product.shape, [of_product, rstd], _slope(n), "slope")

    # As for layer norm, with the weight of a channel inside of the sums over its group:
    # rstd * (g * w - mean(g * w) - (x - mean) * rstd^2 * mean(g * w * (x - mean))).
    def formula(g: Float, x: Float, mean: Float, rstd: Float, slope: Float, mean_g: Float, w: Float) -> Float:
        removed = fma(x - mean, slope, mean_g)
        return rstd * (g * w - removed)

    inner = _map(call, sizes, [gradient, value, mean, rstd, slopes, means, factor], formula)
    by_weight = _folded(call, [products, rstd], (0, 3), _add_product, "weight")
    by_bias = reduce(call.emitter, sums, (0, 3), FLOAT_SUM, "bias")
    flat = (groups * channels,)
    return call.chosen((_small(inner, call.tensor(1).shape), _small(by_weight, flat), _small(by_bias, flat)), 9)
