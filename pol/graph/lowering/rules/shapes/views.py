"""Views and constants: no arithmetic, mostly no node.

They become access maps of whoever reads the result.
"""

from __future__ import annotations

import math

from pol.arithmetic.registers import Register, Word, fma, to_float
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import (
    Value,
    at_index,
    cut,
    diagonal,
    expand,
    flip,
    permute,
    scalar,
    slice_range,
    squeeze,
    strided,
    unfolded,
    unsqueeze,
)
from pol.graph.tensor_type import DType


@lowers(
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
    defines="its first argument",
    is_exact=True,
)
def _identity(call: Call) -> Value:
    return call.tensor(0)


@lowers("aten.copy.default", defines="its second argument, broadcast to the first", is_exact=True)
def _copy(call: Call) -> Value:
    if call.torch_dtype(0) != call.torch_dtype(1):
        raise call.unsupported("a tensor of another dtype is written over this one: convert it explicitly")
    return expand(call.tensor(1), call.output.shape)


@lowers("aten.transpose.int", defines="other strides", is_exact=True)
def _transpose(call: Call) -> Value:
    value = call.tensor(0)
    axes = list(range(len(value.shape)))
    if axes:
        first, second = axes[call.integer(1)], axes[call.integer(2)]
        axes[first], axes[second] = second, first
    return permute(value, axes)


@lowers("aten.permute.default", defines="other strides", is_exact=True)
def _permute(call: Call) -> Value:
    return permute(call.tensor(0), call.integers(1))


@lowers("aten.expand.default", defines="stride 0 along broadcast dimensions", is_exact=True)
def _expand(call: Call) -> Value:
    return expand(call.tensor(0), call.integers(1))


@lowers("aten.unsqueeze.default", defines="dimensions of size 1", is_exact=True)
def _unsqueeze(call: Call) -> Value:
    return unsqueeze(call.tensor(0), call.integer(1))


@lowers("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", defines="dimensions of size 1", is_exact=True)
def _squeeze(call: Call) -> Value:
    value = call.tensor(0)
    return squeeze(
        value, range(len(value.shape)) if call.node.operation == "aten.squeeze.default" else call.integers(1)
    )


@lowers(
    "aten.view.default",
    "aten._unsafe_view.default",
    defines="other shape; a map that moves words if strides can't say it",
    is_exact=True,
)
def _view(call: Call) -> Value:
    return call.emitter.reshaped(call.tensor(0), call.integers(1))


@lowers("aten.select.int", defines="a part", is_exact=True)
def _select(call: Call) -> Value:
    return at_index(call.tensor(0), call.integer(1), call.integer(2))


@lowers("aten.diagonal.default", defines="a part: the sum of two strides", is_exact=True)
def _diagonal(call: Call) -> Value:
    dims = (call.integer(2, "dim1", 0), call.integer(3, "dim2", 1))
    return diagonal(call.tensor(0), call.integer(1, "offset", 0), *dims)


@lowers("aten.slice.Tensor", defines="a part; step >= 1", is_exact=True)
def _slice(call: Call) -> Value:
    value = call.tensor(0)
    axis = call.integer(1, "dim", 0)
    size = value.shape[axis]
    bounds = [call.argument(2, "start"), call.argument(3, "end")]
    given = [bound if type(bound) is int else default for bound, default in zip(bounds, (0, size), strict=True)]
    start, stop = slice_range(size, *given)
    return cut(value, axis, start, stop, call.integer(4, "step", 1))


@lowers("aten.split_with_sizes.default", defines="a part", is_exact=True)
def _split(call: Call) -> tuple[Value, ...]:
    value = call.tensor(0)
    axis = call.integer(2, "dim", 0)
    parts, start = [], 0
    for size in call.integers(1):
        parts.append(cut(value, axis, start, start + size))
        start += size
    return tuple(parts)


@lowers("aten.split.Tensor", "aten.unsafe_split.Tensor", defines="a part", is_exact=True)
def _equal_parts(call: Call) -> tuple[Value, ...]:
    value = call.tensor(0)
    axis, width = call.integer(2, "dim", 0), call.integer(1)
    size = value.shape[axis]
    if width < 1:
        raise call.unsupported("parts need a width")
    return tuple(cut(value, axis, start, min(start + width, size)) for start in range(0, size, width))


@lowers("aten.unfold.default", defines="overlapping parts: other strides", is_exact=True)
def _unfold(call: Call) -> Value:
    return unfolded(call.tensor(0), call.integer(1), call.integer(2), call.integer(3))


@lowers(
    "aten.as_strided.default",
    defines="other strides over the elements in row-major order; the offset counts from the first",
    is_exact=True,
)
def _as_strided(call: Call) -> Value:
    value = call.tensor(0)
    flat = call.emitter.reshaped(value, (math.prod(value.shape),))
    return strided(flat, call.integers(1), call.integers(2), call.integer(3, "storage_offset", 0))


@lowers("aten.flip.default", defines="negative strides", is_exact=True)
def _flip(call: Call) -> Value:
    return flip(call.tensor(0), call.integers(1))


@lowers("aten.full.default", "aten.full_like.default", defines="one number repeated", is_exact=True)
def _full(call: Call) -> Value:
    shape = call.tensor(0).shape if "like" in call.node.operation else call.integers(0)
    return expand(scalar(call.number(1), call.dtype), shape)


@lowers("aten.ones.default", "aten.zeros.default", defines="one number repeated", is_exact=True)
def _ones_or_zeros(call: Call) -> Value:
    return expand(scalar("ones" in call.node.operation, call.dtype), call.integers(0))


@lowers("aten.scalar_tensor.default", defines="one number repeated", is_exact=True)
def _scalar_tensor(call: Call) -> Value:
    return scalar(call.number(0), call.dtype)


@lowers(
    "aten.arange.default",
    "aten.arange.start",
    "aten.arange.start_step",
    defines="start + step * coordinate: FFMA(I2F(coordinate), step, start); integers: ADD, MUL",
    is_exact=True,
)
def _arange(call: Call) -> Value:
    start, end = (0, call.number(0)) if "default" in call.node.operation else (call.number(0), call.number(1))
    step = call.number(2, "step", 1)

    def formula(place: Word) -> Register:
        if call.dtype is DType.F32:
            return fma(to_float(place), step, start)
        return place * int(step) + int(start)

    return call.emitter.map((math.ceil((end - start) / step),), call.dtype, [Coordinate(0)], formula)
