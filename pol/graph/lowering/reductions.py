"""Reductions along dimensions, and the softmax family built from them.

The order is part of the program. Up to 64 terms are folded one after the other. More terms are folded into 32
interleaved lanes (lane l takes terms l, l + 32, l + 64, ...), and then halves are joined: lane l with lane l + 16, then
l + 8, 4, 2 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.emitter import Emitter, Read
from pol.graph.lowering.values import Value, View, axis_index, cut, expand, permute, squeeze, unsqueeze
from pol.graph.node import Affine, Bound
from pol.graph.types import MAX_RANK, DType, TensorType

SEQUENTIAL = 64
LANES = 32


@dataclass(frozen=True)
class Monoid:
    """An operation to fold with, and its neutral word."""

    op: Op
    neutral: int
    dtype: DType


FLOAT_SUM = Monoid(Op.FADD, 0, DType.F32)
INTEGER_SUM = Monoid(Op.ADD, 0, DType.I32)
MAXIMUM = Monoid(Op.FMAX, 0xFF800000, DType.F32)
MINIMUM = Monoid(Op.FMIN, 0x7F800000, DType.F32)


def reduce(emitter: Emitter, value: Value, axes: Sequence[int], monoid: Monoid, part: str = "") -> View:
    """The value reduced along dimensions, which disappear; the terms go in row-major order."""
    rank = len(value.shape)
    gone = sorted({axis_index(axis, rank) for axis in axes}) if rank else []
    kept = [axis for axis in range(rank) if axis not in gone]
    shape = tuple(value.shape[axis] for axis in kept)
    count = 1
    for axis in gone:
        count *= value.shape[axis]
    terms = emitter.reshaped(permute(value, [*kept, *gone]), (*shape, count))
    terms = terms if isinstance(terms, View) else emitter.stored(terms)
    if count <= SEQUENTIAL or len(shape) == MAX_RANK:
        return emitter.fold(TensorType(monoid.dtype, shape), (count,), monoid.neutral, [terms], _join(monoid), part)
    return _lanes(emitter, terms, monoid, part)


def _join(monoid: Monoid) -> Callable[[Builder, int, list[int]], int]:
    return lambda b, accumulator, regs: b.emit(monoid.op, accumulator, *regs)


def _lanes(emitter: Emitter, terms: View, monoid: Monoid, part: str) -> View:
    *shape, count = terms.shape
    rounds = -(-count // LANES)
    stride = terms.strides[-1]
    split = replace(terms, shape=(*shape, LANES, rounds), strides=(*terms.strides[:-1], stride, LANES * stride))
    place = Affine(0, (*[0] * (1 + len(shape)), 1, LANES))
    bounds = (Bound(place, count),) if rounds * LANES != count else ()
    read = Read(split, fill=monoid.neutral, bounds=bounds)
    prefix = f"{part}." if part else ""
    type_ = TensorType(monoid.dtype, (*shape, LANES))
    joined: Value = emitter.fold(type_, (rounds,), monoid.neutral, [read], _join(monoid), f"{prefix}lanes")
    width = LANES
    while width > 1:
        width //= 2
        halves = [cut(joined, -1, 0, width), cut(joined, -1, width, 2 * width)]
        if width == 1:
            halves = [squeeze(half, [-1]) for half in halves]
        joined = emitter.map(
            halves[0].shape,
            monoid.dtype,
            halves,
            lambda b, regs: b.emit(monoid.op, *regs),
            part if width == 1 else f"{prefix}join_{width}",
        )
    if not isinstance(joined, View):
        raise AssertionError("a node gives a view")
    return joined


def _kept(value: Value, axes: Sequence[int], rank: int) -> Value:
    """Put the reduced dimensions back with size 1."""
    for axis in sorted({axis_index(axis, rank) for axis in axes} if rank else set()):
        value = unsqueeze(value, axis)
    return value


def _axes(call: Call, position: int = 1, name: str = "dim") -> tuple[int, ...]:
    rank = len(call.tensor(0).shape)
    return call.integers(position, name, ()) or tuple(range(rank))


def _sum(call: Call) -> Value:
    value = call.tensor(0)
    axes = _axes(call) if call.node.operation == "aten.sum.dim_IntList" else tuple(range(len(value.shape)))
    if call.dtype is not value.dtype:
        value = _converted(call, value)
    monoid = FLOAT_SUM if call.dtype is DType.F32 else INTEGER_SUM
    result = reduce(call.emitter, value, axes, monoid)
    return _kept(result, axes, len(value.shape)) if call.flag(2, "keepdim") else result


def _converted(call: Call, value: Value) -> Value:
    """The value converted to the word type of the output."""
    if call.dtype is not DType.F32:
        raise call.unsupported("a sum of float32 numbers as integers")
    return call.emitter.map(value.shape, DType.F32, [value], lambda b, regs: b.emit(Op.I2F, *regs), "converted")


def _mean(call: Call) -> Value:
    value = call.tensor(0)
    axes = _axes(call) if call.node.operation == "aten.mean.dim" else tuple(range(len(value.shape)))
    rank = len(value.shape)
    total: Value = reduce(call.emitter, value, axes, FLOAT_SUM, "sum")
    total = _kept(total, axes, rank) if call.flag(2, "keepdim") else total
    count = 1
    for axis in {axis_index(axis, rank) for axis in axes} if rank else set():
        count *= value.shape[axis]
    return elementwise(call, [total, float(count)], lambda b, regs: b.emit(Op.FDIV, *regs))


def _extreme(monoid: Monoid) -> Callable[[Call], Value]:
    def lower(call: Call) -> Value:
        value = call.tensor(0)
        if call.dtype is not DType.F32:
            raise call.unsupported("only float32 is defined")
        result = reduce(call.emitter, value, _axes(call), monoid)
        return _kept(result, _axes(call), len(value.shape)) if call.flag(2, "keepdim") else result

    return lower


def _log_softmax(call: Call) -> Value:
    """x - max - log(sum(exp(x - max)))."""
    shifted, total = _shifted_exponentials(call)

    def formula(b: Builder, regs: list[int]) -> int:
        return b.emit(Op.FSUB, regs[0], b.call(functions.log(), regs[1]))

    return elementwise(call, [shifted, total], formula)


def _softmax(call: Call) -> Value:
    """exp(x - max) / sum(exp(x - max))."""
    shifted, total = _shifted_exponentials(call)
    exponential = functions.exp()
    return elementwise(call, [shifted, total], lambda b, regs: b.emit(Op.FDIV, b.call(exponential, regs[0]), regs[1]))


def _shifted_exponentials(call: Call) -> tuple[Value, Value]:
    """x - max, and the sum of its exponentials along the dimension, expanded."""
    value, axis = call.tensor(0), call.integer(1)
    rank = len(value.shape)
    greatest = _kept(reduce(call.emitter, value, [axis], MAXIMUM, "max"), [axis], rank)
    shifted = elementwise(call, [value, greatest], lambda b, regs: b.emit(Op.FSUB, *regs), part="shifted")
    exponential = functions.exp()
    powers = elementwise(call, [shifted], lambda b, regs: b.call(exponential, *regs), part="exp")
    total = _kept(reduce(call.emitter, powers, [axis], FLOAT_SUM, "sum"), [axis], rank)
    return shifted, expand(total, value.shape)


def _log_softmax_backward(call: Call) -> Value:
    """g - exp(y) * sum(g)."""
    gradient, output, axis = call.tensor(0), call.tensor(1), call.integer(2)
    total = _kept(reduce(call.emitter, gradient, [axis], FLOAT_SUM, "sum"), [axis], len(gradient.shape))
    exponential = functions.exp()

    def formula(b: Builder, regs: list[int]) -> int:
        part = b.emit(Op.FMUL, b.call(exponential, regs[1]), regs[2])
        return b.emit(Op.FSUB, regs[0], part)

    return elementwise(call, [gradient, output, total], formula)


def _softmax_backward(call: Call) -> Value:
    """y * (g - sum(g * y))."""
    gradient, output, axis = call.tensor(0), call.tensor(1), call.integer(2)
    product = elementwise(call, [gradient, output], lambda b, regs: b.emit(Op.FMUL, *regs), part="product")
    total = _kept(reduce(call.emitter, product, [axis], FLOAT_SUM, "sum"), [axis], len(gradient.shape))
    return elementwise(
        call,
        [gradient, output, total],
        lambda b, regs: b.emit(Op.FMUL, regs[1], b.emit(Op.FSUB, regs[0], regs[2])),
    )


REDUCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "aten.sum.default": _sum,
    "aten.sum.dim_IntList": _sum,
    "aten.mean.default": _mean,
    "aten.mean.dim": _mean,
    "aten.amax.default": _extreme(MAXIMUM),
    "aten.amin.default": _extreme(MINIMUM),
    "aten._log_softmax.default": _log_softmax,
    "aten._softmax.default": _softmax,
    "aten._log_softmax_backward_data.default": _log_softmax_backward,
    "aten._softmax_backward_data.default": _softmax_backward,
}
