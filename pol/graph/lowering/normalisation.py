"""Layer, batch and group normalisation with their gradients: means first, then centred squares, then one map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.aten_graph import Ref
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import FoldFormula, Formula
from pol.graph.lowering.folds import FLOAT_SUM, fold_terms, reduce, restored
from pol.graph.lowering.reductions import mean_along, scaled, squares
from pol.graph.lowering.values import Fill, Value, View, expand, float_word, reshape, unsqueeze
from pol.graph.tensor_type import DType


@dataclass(frozen=True)
class _Statistics:
    """Mean, sum of centred squares and 1 / sqrt(variance + eps), without the reduced dimensions."""

    mean: View
    squares: View
    rstd: View


def _ones(*shape: int) -> Fill:
    """What stands for a weight that is not there; a product with it is exact."""
    return Fill(float_word(1.0), DType.F32, shape)


def _map(call: Call, shape: Sequence[int], values: Sequence[Value], formula: Formula, part: str = "") -> View:
    whole = tuple(shape)
    return call.emitter.map(whole, DType.F32, [expand(value, whole) for value in values], formula, part)


def _sum_of_products(call: Call, values: Sequence[Value], axes: Sequence[int], formula: FoldFormula, part: str) -> View:
    """A fold whose terms are zero where all operands are."""
    shape = values[0].shape
    operands = [expand(value, shape) for value in values]
    return fold_terms(call.emitter, operands, axes, FLOAT_SUM, formula, [0] * len(values), part)


def _statistics(call: Call, value: Value, axes: Sequence[int], epsilon: float) -> _Statistics:
    rank = len(value.shape)
    count = math.prod(value.shape[axis] for axis in axes)
    mean = mean_along(call, value, axes)
    total = squares(call, value, expand(restored(mean, axes, rank), value.shape), axes, "squares")

    def rstd(b: Builder, regs: list[int]) -> int:
        variance = b.emit(Op.FDIV, regs[0], b.f32(count))
        return b.call(functions.rsqrt(), b.emit(Op.FADD, variance, b.f32(epsilon)))

    return _Statistics(mean, total, _map(call, total.shape, [total], rstd, "rstd"))


def _optional(call: Call, position: int) -> Value | None:
    return call.tensor(position) if isinstance(call.argument(position), Ref) else None


def _reshaped(call: Call, value: Value, shape: Sequence[int]) -> Value:
    return call.emitter.reshaped(value, shape)


def _small(value: View, shape: Sequence[int]) -> View:
    """A stored tensor under another shape of as many elements."""
    seen = reshape(value, shape)
    if not isinstance(seen, View):
        raise AssertionError("a stored tensor can have any shape")
    return seen


def _normalised(call: Call, value: Value, mean: Value, rstd: Value, weight: Value | None, bias: Value | None) -> View:
    """((x - mean) * rstd) * weight + bias, the last two fused."""

    def formula(b: Builder, regs: list[int]) -> int:
        result = b.emit(Op.FMUL, b.emit(Op.FSUB, regs[0], regs[1]), regs[2])
        if weight is not None and bias is not None:
            return b.emit(Op.FFMA, result, regs[3], regs[4])
        return (
            result if weight is None and bias is None else b.emit(Op.FMUL if bias is None else Op.FADD, result, regs[3])
        )

    return _map(
        call, value.shape, [value, mean, rstd, *(part for part in (weight, bias) if part is not None)], formula, ""
    )


def _layer_norm(call: Call) -> tuple[Value, ...]:
    value, normalised = call.tensor(0), call.integers(1)
    rank = len(value.shape)
    axes = tuple(range(rank - len(normalised), rank))
    if not normalised or value.shape[rank - len(normalised) :] != normalised:
        raise ProtocolError(f"{normalised} are not the last dimensions of {value.shape}")
    found = _statistics(call, value, axes, call.number(4))
    mean, rstd = restored(found.mean, axes, rank), restored(found.rstd, axes, rank)
    return _normalised(call, value, mean, rstd, _optional(call, 2), _optional(call, 3)), mean, rstd


def _layer_norm_backward(call: Call) -> tuple[Value, ...]:
    """With c = x - mean, h = g * weight, n terms: rstd * (h - (c * (rstd * (rstd * sum(h * c) / n)) + sum(h) / n))."""
    gradient, value, normalised = call.tensor(0), call.tensor(1), call.integers(2)
    mean, rstd, weight = call.tensor(3), call.tensor(4), _optional(call, 5)
    if weight is None:
        weight = _ones(*normalised)
    rank = len(value.shape)
    axes, rows = tuple(range(rank - len(normalised), rank)), tuple(range(rank - len(normalised)))
    inner = _centred_gradient(call, gradient, value, mean, rstd, weight, axes)

    def along_rows(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, regs[0], b.emit(Op.FMUL, b.emit(Op.FSUB, regs[1], regs[2]), regs[3]), accumulator)

    by_weight = _sum_of_products(call, [gradient, value, mean, rstd], rows, along_rows, "weight")
    return call.chosen((inner, by_weight, reduce(call.emitter, gradient, rows, FLOAT_SUM, "bias")), 7)


def _centred_gradient(
    call: Call, gradient: Value, value: Value, mean: Value, rstd: Value, weight: Value, axes: Sequence[int]
) -> View:
    """The gradient of a normalised tensor whose statistics are over `axes`; all operands broadcast to its shape."""
    rank, shape = len(value.shape), value.shape
    count = math.prod(shape[axis] for axis in axes)

    def plain(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, *regs, accumulator)

    def centred(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, b.emit(Op.FMUL, regs[0], regs[3]), b.emit(Op.FSUB, regs[1], regs[2]), accumulator)

    total = scaled(call, _sum_of_products(call, [gradient, weight], axes, plain, "sum"), count, "mean_gradient")
    products = restored(_sum_of_products(call, [gradient, value, mean, weight], axes, centred, "product"), axes, rank)

    def slope(b: Builder, regs: list[int]) -> int:
        part = b.emit(Op.FDIV, b.emit(Op.FMUL, regs[1], regs[0]), b.f32(count))
        return b.emit(Op.FMUL, regs[1], part)

    slopes = _map(call, products.shape, [products, rstd], slope, "slope")

    def formula(b: Builder, regs: list[int]) -> int:
        own = b.emit(Op.FMUL, regs[0], regs[6])
        removed = b.emit(Op.FFMA, b.emit(Op.FSUB, regs[1], regs[2]), regs[4], regs[5])
        return b.emit(Op.FMUL, regs[3], b.emit(Op.FSUB, own, removed))

    return _map(call, shape, [gradient, value, mean, rstd, slopes, restored(total, axes, rank), weight], formula)


def _channel(value: Value, rank: int) -> Value:
    """A tensor over the second dimension of `rank` dimensions."""
    for _ in range(rank - 2):
        value = unsqueeze(value, len(value.shape))
    return value


def _batch_norm(call: Call) -> tuple[Value, ...]:
    """Training: statistics of the batch; running ones become (1 - momentum) * old + momentum * new, fused."""
    functional = "functional" in call.node.operation
    value, weight, bias = call.tensor(0), _optional(call, 1), _optional(call, 2)
    first = 5 if functional else 3
    if not call.flag(first) or len(value.shape) < 2:
        raise call.unsupported("only statistics of the batch are taken here")
    momentum, epsilon = call.number(first + 1), call.number(first + 2)
    rank = len(value.shape)
    axes = (0, *range(2, rank))
    found = _statistics(call, value, axes, epsilon)
    parts = [None if part is None else _channel(part, rank) for part in (weight, bias)]
    result = _normalised(call, value, _channel(found.mean, rank), _channel(found.rstd, rank), *parts)
    if not functional:
        return result, found.mean, found.rstd
    count = math.prod(value.shape[axis] for axis in axes)

    def running_mean(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FFMA, regs[1], b.f32(momentum), b.emit(Op.FMUL, regs[0], b.f32(1 - momentum)))

    def running_variance(b: Builder, regs: list[int]) -> int:
        unbiased = b.emit(Op.FDIV, regs[1], b.f32(count - 1))
        return b.emit(Op.FFMA, unbiased, b.f32(momentum), b.emit(Op.FMUL, regs[0], b.f32(1 - momentum)))

    shape = found.mean.shape
    return (
        result,
        found.mean,
        found.rstd,
        _map(call, shape, [call.tensor(3), found.mean], running_mean, "running_mean"),
        _map(call, shape, [call.tensor(4), found.squares], running_variance, "running_variance"),
    )


def _batch_norm_backward(call: Call) -> tuple[Value, ...]:
    """As for layer norm, the weight taken out of the sums."""
    gradient, value, weight = call.tensor(0), call.tensor(1), _optional(call, 2)
    if not call.flag(7):
        raise call.unsupported("only statistics of the batch are differentiated here")
    rank = len(value.shape)
    axes = (0, *range(2, rank))
    count = math.prod(value.shape[axis] for axis in axes)
    rstd = call.tensor(6)
    mean = _channel(call.tensor(5), rank)
    total = reduce(call.emitter, gradient, axes, FLOAT_SUM, "bias")

    def centred(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, regs[0], b.emit(Op.FSUB, regs[1], regs[2]), accumulator)

    products = _sum_of_products(call, [gradient, value, mean], axes, centred, "product")
    shape = products.shape
    by_weight = _map(call, shape, [products, rstd], lambda b, regs: b.emit(Op.FMUL, *regs), "weight")

    def slope(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FMUL, regs[1], b.emit(Op.FDIV, regs[0], b.f32(count)))

    slopes = _map(call, shape, [by_weight, rstd], slope, "slope")
    means = scaled(call, total, count, "mean_gradient")
    factor = rstd
    if weight is not None:
        factor = _map(call, shape, [weight, rstd], lambda b, regs: b.emit(Op.FMUL, *regs), "factor")

    def formula(b: Builder, regs: list[int]) -> int:
        removed = b.emit(Op.FFMA, b.emit(Op.FSUB, regs[1], regs[2]), regs[3], regs[4])
        return b.emit(Op.FMUL, regs[5], b.emit(Op.FSUB, regs[0], removed))

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
    return _reshaped(call, value, (groups, math.prod(value.shape) // groups, 1))


def _group_norm(call: Call) -> tuple[Value, ...]:
    sizes = _group_sizes(call, 3)
    value = _reshaped(call, call.tensor(0), sizes)
    found = _statistics(call, value, (2, 3), call.number(7))
    mean, rstd = (restored(part, (2, 3), 4) for part in (found.mean, found.rstd))
    parts = [
        None if part is None else _by_channel(call, part, sizes[1]) for part in (_optional(call, 1), _optional(call, 2))
    ]
    result = _normalised(call, value, mean, rstd, *parts)
    return _small(result, call.output.shape), found.mean, found.rstd


def _group_norm_backward(call: Call) -> tuple[Value, ...]:
    """As for layer norm over the channels of a group; sums over positions serve the weight and the groups."""
    sizes = _group_sizes(call, 5)
    samples, groups, channels, positions = sizes
    gradient, value = (_reshaped(call, call.tensor(position), sizes) for position in (0, 1))
    mean, rstd = (_reshaped(call, call.tensor(position), (samples, groups, 1, 1)) for position in (2, 3))
    weight = _optional(call, 4)
    factor = _by_channel(call, _ones(groups * channels) if weight is None else weight, groups)

    def centred(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, regs[0], b.emit(Op.FSUB, regs[1], regs[2]), accumulator)

    sums = restored(reduce(call.emitter, gradient, (3,), FLOAT_SUM, "sum"), (3,), 4)
    products = restored(_sum_of_products(call, [gradient, value, mean], (3,), centred, "product"), (3,), 4)

    def product(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FFMA, *regs, accumulator)

    terms = channels * positions
    of_group = restored(_sum_of_products(call, [sums, factor], (2,), product, "group_sum"), (2,), 4)
    of_product = restored(_sum_of_products(call, [products, factor], (2,), product, "group_product"), (2,), 4)
    means = _map(call, of_group.shape, [of_group], lambda b, r: b.emit(Op.FDIV, r[0], b.f32(terms)), "mean_gradient")

    def slope(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FMUL, regs[1], b.emit(Op.FDIV, b.emit(Op.FMUL, regs[1], regs[0]), b.f32(terms)))

    slopes = _map(call, of_product.shape, [of_product, rstd], slope, "slope")

    def formula(b: Builder, regs: list[int]) -> int:
        removed = b.emit(Op.FFMA, b.emit(Op.FSUB, regs[1], regs[2]), regs[4], regs[5])
        return b.emit(Op.FMUL, regs[3], b.emit(Op.FSUB, b.emit(Op.FMUL, regs[0], regs[6]), removed))

    inner = _map(call, sizes, [gradient, value, mean, rstd, slopes, means, factor], formula)
    by_weight = _sum_of_products(call, [products, rstd], (0, 3), product, "weight")
    by_bias = reduce(call.emitter, sums, (0, 3), FLOAT_SUM, "bias")
    flat = (groups * channels,)
    return call.chosen((_small(inner, call.tensor(1).shape), _small(by_weight, flat), _small(by_bias, flat)), 9)


NORMALISATION: Mapping[str, Callable[[Call], tuple[Value, ...]]] = {
    "aten.native_layer_norm.default": _layer_norm,
    "aten.native_layer_norm_backward.default": _layer_norm_backward,
    "aten._native_batch_norm_legit_functional.default": _batch_norm,
    "aten._native_batch_norm_legit.no_stats": _batch_norm,
    "aten.native_batch_norm_backward.default": _batch_norm_backward,
    "aten.native_group_norm.default": _group_norm,
    "aten.native_group_norm_backward.default": _group_norm_backward,
}
