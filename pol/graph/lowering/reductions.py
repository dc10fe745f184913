"""Reductions along dimensions: sums, products, extremes and where they are, norms, variances, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.emitter import Coordinate, Read
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
from pol.graph.lowering.softmax import log_of_sum
from pol.graph.lowering.values import Value, View, axis_index, cut, expand, permute, reshape, squeeze
from pol.graph.node import Affine, Bound
from pol.graph.tensor_type import DType, TensorType

NOWHERE = 0x7FFFFFFF
_SCANNED = 64


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


def _of_words(call: Call, floating: Monoid, integer: Monoid) -> tuple[Value, Monoid]:
    """The first argument as words of the result, and the monoid for them."""
    value = call.tensor(0)
    if call.dtype is value.dtype:
        return value, floating if call.dtype is DType.F32 else integer
    if call.dtype is not DType.F32:
        raise call.unsupported("a reduction of float32 numbers to integers")
    converted = call.emitter.map(value.shape, DType.F32, [value], lambda b, regs: b.emit(Op.I2F, *regs), "converted")
    return converted, floating


def _sum(call: Call) -> Value:
    value, monoid = _of_words(call, FLOAT_SUM, INTEGER_SUM)
    return _reduced(call, value, monoid)


def _product(call: Call) -> Value:
    value, monoid = _of_words(call, FLOAT_PRODUCT, INTEGER_PRODUCT)
    return _reduced(call, value, monoid)


def _mean(call: Call) -> Value:
    value = call.tensor(0)
    total = _reduced(call, value, FLOAT_SUM, "sum")
    return elementwise(call, [total, float(_count(value, _axes(call)))], lambda b, regs: b.emit(Op.FDIV, *regs))


def _extreme(floating: Monoid, integer: Monoid) -> Callable[[Call], Value]:
    def lower(call: Call) -> Value:
        value = call.tensor(0)
        return _reduced(call, value, floating if value.dtype is DType.F32 else integer)

    return lower


def _with_place(floating: Monoid, integer: Monoid) -> Callable[[Call], tuple[Value, ...]]:
    """The extreme along a dimension and the first place where it stands; a NaN is every extreme."""

    def lower(call: Call) -> tuple[Value, ...]:
        value, axis = call.tensor(0), call.integer(1)
        extreme, place = _extreme_and_place(call, value, axis, floating, integer)
        if call.flag(2, "keepdim"):
            return restored(extreme, [axis], len(value.shape)), restored(place, [axis], len(value.shape))
        return extreme, place

    return lower


def _place(floating: Monoid, integer: Monoid) -> Callable[[Call], Value]:
    def lower(call: Call) -> Value:
        value = call.tensor(0)
        if call.argument(1, "dim") is None:
            flat = call.emitter.reshaped(value, [-1])
            place = _extreme_and_place(call, flat, 0, floating, integer)[1]
            return expand(place, call.output.shape) if call.output.shape else place
        axis = call.integer(1, "dim")
        place = _extreme_and_place(call, value, axis, floating, integer)[1]
        return restored(place, [axis], len(value.shape)) if call.flag(2, "keepdim") else place

    return lower


def _extreme_and_place(call: Call, value: Value, axis: int, floating: Monoid, integer: Monoid) -> tuple[Value, Value]:
    float_words = value.dtype is DType.F32
    extreme = reduce(call.emitter, value, [axis], floating if float_words else integer, "extreme")
    rank = len(value.shape)
    if not rank:
        zero = call.emitter.map((), DType.I32, [extreme], lambda b, _: b.emit(Op.MOV, b.const(0)))
        return extreme, zero

    def place(b: Builder, regs: list[int]) -> int:
        word, wanted, here = regs
        if not float_words:
            found = b.emit(Op.EQ, word, wanted)
        else:
            # If there is a NaN, the extreme is NaN, which equals nothing: then the first NaN is looked for.
            usual = b.emit(Op.FEQ, word, word)
            found = b.emit(Op.SELECT, usual, b.emit(Op.FEQ, word, wanted), b.const(1))
        return b.emit(Op.SELECT, found, here, b.const(NOWHERE))

    wide = expand(restored(extreme, [axis], rank), value.shape)
    places = call.emitter.map(
        value.shape, DType.I32, [value, wide, Coordinate(axis_index(axis, rank))], place, "places"
    )
    return extreme, reduce(call.emitter, places, [axis], INTEGER_MINIMUM, "place")


def _logical(monoid: Monoid) -> Callable[[Call], Value]:
    def lower(call: Call) -> Value:
        value = call.tensor(0)
        if call.torch_dtype(0) != "bool":
            value = _nonzero(call, value)
        return _reduced(call, value, monoid)

    return lower


def _nonzero(call: Call, value: Value) -> Value:
    same = Op.FEQ if value.dtype is DType.F32 else Op.EQ

    def formula(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.XOR, b.emit(same, regs[0], b.const(0)), b.const(1))

    return call.emitter.map(value.shape, DType.I32, [value], formula, "nonzero")


def squares(call: Call, value: Value, mean: Value, axes: Sequence[int], part: str) -> View:
    """The sum along dimensions of (x - mean)^2, fused; the mean has the shape of the value."""

    def formula(b: Builder, accumulator: int, regs: list[int]) -> int:
        centred = b.emit(Op.FSUB, *regs)
        return b.emit(Op.FFMA, centred, centred, accumulator)

    return fold_terms(call.emitter, [value, mean], axes, FLOAT_SUM, formula, [0, 0], part)


def scaled(call: Call, value: Value, count: float, part: str) -> View:
    """The value divided by a number."""
    return call.emitter.map(
        value.shape, DType.F32, [value], lambda b, regs: b.emit(Op.FDIV, regs[0], b.f32(count)), part
    )


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

    def formula(b: Builder, accumulator: int, regs: list[int]) -> int:
        return b.emit(Op.FADD, accumulator, b.emit(Op.FSUB, *regs))

    away = fold_terms(call.emitter, [value, expand(first, value.shape)], axes, FLOAT_SUM, formula, [0, 0], "mean.sum")
    count = _count(value, axes)

    def mean(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FADD, regs[0], b.emit(Op.FDIV, regs[1], b.f32(count)))

    begin = reshape(first, away.shape)
    if begin is None:
        raise AssertionError("dimensions of size 1 can be left out")
    return call.emitter.map(away.shape, DType.F32, [begin, away], mean, "mean")


def _variance(call: Call) -> tuple[Value, Value]:
    """sum((x - mean)^2) / max(count - correction, 0), and the mean; the dimensions stay if the call says so."""
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


def _deviation(call: Call) -> Value:
    return elementwise(call, [_variance(call)[0]], lambda b, regs: b.emit(Op.FSQRT, *regs))


def _norm(call: Call) -> Value:
    """The 2-norm (a sum of fused squares), the 1-norm, or the greatest or least magnitude."""
    value, order = call.tensor(0), call.number(1, "ord", 2)
    axes = _axes(call, 2)
    if value.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")

    def magnitude(join: Op) -> Callable[[Builder, int, list[int]], int]:
        return lambda b, acc, regs: b.emit(join, acc, b.emit(Op.FABS, *regs))

    if order == 2:
        total: Value = fold_terms(
            call.emitter, [value], axes, FLOAT_SUM, lambda b, acc, regs: b.emit(Op.FFMA, regs[0], regs[0], acc), [0],
            "squares",
        )  # fmt: skip
        total = call.emitter.map(total.shape, DType.F32, [total], lambda b, regs: b.emit(Op.FSQRT, *regs))
    elif order == 1:
        total = fold_terms(call.emitter, [value], axes, FLOAT_SUM, magnitude(Op.FADD), [0])
    elif math.isinf(order):
        # Magnitudes are never below 0, so that 0 is neutral for their maximum.
        monoid = Monoid(MAXIMUM.join, 0, DType.F32) if order > 0 else MINIMUM
        join = magnitude(Op.FMAX if order > 0 else Op.FMIN)
        total = fold_terms(call.emitter, [value], axes, monoid, join, [monoid.neutral])
    else:
        raise call.unsupported(f"only the norms of order 1, 2 and infinity are defined, not {order}")
    return restored(total, axes, len(value.shape)) if call.flag(3, "keepdim") else total


def _logsumexp(call: Call) -> Value:
    """m + log(sum(exp(x - m))) with m = max, or 0 where that is infinite."""
    value, axes = call.tensor(0), list(_axes(call))
    shift, logarithm = log_of_sum(call, value, axes, finite=True)
    if call.flag(2, "keepdim"):
        shift, logarithm = (restored(part, axes, len(value.shape)) for part in (shift, logarithm))
    return elementwise(call, [logarithm, shift], lambda b, regs: b.emit(Op.FADD, *regs))


def _cumulative_sum(call: Call) -> Value:
    value, monoid = _of_words(call, FLOAT_SUM, INTEGER_SUM)
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
    if count <= _SCANNED:
        return _short_scan(call, value, monoid)
    blocks = -(-count // _SCANNED)
    view = value if isinstance(value, View) else emitter.stored(value)
    inside = _short_scan(call, view, monoid, blocks)
    ends = squeeze(cut(inside, -1, _SCANNED - 1, _SCANNED), [-1])
    before = cut(_scan(call, ends, monoid), -1, 0, blocks - 1)
    if not isinstance(before, View):
        raise AssertionError("a scan gives a view")
    # Block b adds the sum of the blocks before it; the first one adds the neutral word.
    rank = len(kept)
    shifted = View(
        before.source, before.index, before.type, (*kept, blocks, _SCANNED),
        before.base - before.strides[-1], (*before.strides, 0), before.step_stride,
    )  # fmt: skip
    bound = Bound(Affine(-1, (0, *[0] * rank, 1, 0)), blocks)
    joined = emitter.map(
        (*kept, blocks, _SCANNED),
        monoid.dtype,
        [inside, Read(shifted, fill=monoid.neutral, bounds=(bound,))],
        lambda b, regs: monoid.join(b, regs[1], regs[0]),
        "cumulative",
    )
    flat = reshape(joined, (*kept, blocks * _SCANNED))
    if flat is None:
        raise AssertionError("a stored tensor can have any shape")
    return cut(flat, -1, 0, count)


def _short_scan(call: Call, value: Value, monoid: Monoid, blocks: int = 0) -> View:
    """Running sums of at most 64 terms, or of blocks of 64: element i folds the terms 0 .. i."""
    view = value if isinstance(value, View) else call.emitter.stored(value)
    *kept, count = view.shape
    stride = view.strides[-1]
    rank = len(kept)
    width = _SCANNED if blocks else count
    shape = (*kept, *([blocks] if blocks else []), width)
    middle = (_SCANNED * stride,) if blocks else ()
    seen = View(
        view.source, view.index, view.type, (*shape, width), view.base,
        (*view.strides[:-1], *middle, 0, stride), view.step_stride,
    )  # fmt: skip
    zeros = [0] * (1 + rank)
    bounds = [Bound(Affine(0, (*zeros, *([0] if blocks else []), 1, -1)), width)]
    if blocks and blocks * _SCANNED != count:
        bounds.append(Bound(Affine(0, (*zeros, _SCANNED, 0, 1)), count))
    read = Read(seen, fill=monoid.neutral, bounds=tuple(bounds))
    return call.emitter.fold(
        TensorType(monoid.dtype, shape),
        (width,),
        monoid.neutral,
        [read],
        lambda b, acc, regs: monoid.join(b, acc, regs[0]),
        "running",
    )


REDUCTIONS: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.sum.default": _sum,
    "aten.sum.dim_IntList": _sum,
    "aten.mean.default": _mean,
    "aten.mean.dim": _mean,
    "aten.prod.default": _product,
    "aten.prod.dim_int": _product,
    "aten.amax.default": _extreme(MAXIMUM, INTEGER_MAXIMUM),
    "aten.amin.default": _extreme(MINIMUM, INTEGER_MINIMUM),
    "aten.max.default": _extreme(MAXIMUM, INTEGER_MAXIMUM),
    "aten.min.default": _extreme(MINIMUM, INTEGER_MINIMUM),
    "aten.max.dim": _with_place(MAXIMUM, INTEGER_MAXIMUM),
    "aten.min.dim": _with_place(MINIMUM, INTEGER_MINIMUM),
    "aten.argmax.default": _place(MAXIMUM, INTEGER_MAXIMUM),
    "aten.argmin.default": _place(MINIMUM, INTEGER_MINIMUM),
    "aten.any.default": _logical(ANY),
    "aten.any.dim": _logical(ANY),
    "aten.any.dims": _logical(ANY),
    "aten.all.default": _logical(ALL),
    "aten.all.dim": _logical(ALL),
    "aten.var.correction": lambda call: _variance(call)[0],
    "aten.var_mean.correction": _variance,
    "aten.std.correction": _deviation,
    "aten.linalg_vector_norm.default": _norm,
    "aten.logsumexp.default": _logsumexp,
    "aten.cumsum.default": _cumulative_sum,
}
