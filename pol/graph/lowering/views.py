"""Views and creation: operations that compute nothing; they become access maps of whoever reads the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate
from pol.graph.lowering.values import (
    Value,
    cut,
    expand,
    flip,
    integer_word,
    permute,
    scalar,
    select,
    slice_range,
    squeeze,
    unsqueeze,
)
from pol.graph.tensor_type import DType


def _identity(call: Call) -> Value:
    return call.tensor(0)


def _copy(call: Call) -> Value:
    """What a tensor holds after another one was written over it."""
    if call.torch_dtype(0) != call.torch_dtype(1):
        raise call.unsupported("a tensor of another dtype is written over this one: convert it explicitly")
    return expand(call.tensor(1), call.output.shape)


def _transpose(call: Call) -> Value:
    value = call.tensor(0)
    axes = list(range(len(value.shape)))
    if axes:
        first, second = axes[call.integer(1)], axes[call.integer(2)]
        axes[first], axes[second] = second, first
    return permute(value, axes)


def _slice(call: Call) -> Value:
    value = call.tensor(0)
    axis = call.integer(1, "dim", 0)
    size = value.shape[axis]
    bounds = [call.argument(2, "start"), call.argument(3, "end")]
    given = [bound if type(bound) is int else default for bound, default in zip(bounds, (0, size), strict=True)]
    start, stop = slice_range(size, *given)
    return cut(value, axis, start, stop, call.integer(4, "step", 1))


def _split(call: Call) -> tuple[Value, ...]:
    value = call.tensor(0)
    axis = call.integer(2, "dim", 0)
    parts, start = [], 0
    for size in call.integers(1):
        parts.append(cut(value, axis, start, start + size))
        start += size
    return tuple(parts)


def _equal_parts(call: Call) -> tuple[Value, ...]:
    value = call.tensor(0)
    axis, width = call.integer(2, "dim", 0), call.integer(1)
    size = value.shape[axis]
    if width < 1:
        raise call.unsupported("parts need a width")
    return tuple(cut(value, axis, start, min(start + width, size)) for start in range(0, size, width))


def _full(call: Call) -> Value:
    return expand(scalar(call.number(1), call.dtype), call.output.shape)


def _scalar_tensor(call: Call) -> Value:
    return scalar(call.number(0), call.dtype)


def _arange(call: Call) -> Value:
    start = call.number(0) if call.node.operation != "aten.arange.default" else 0
    step = call.number(2, "step", 1)

    def formula(b: Builder, regs: list[int]) -> int:
        if call.dtype is DType.F32:
            return b.emit(Op.FFMA, b.emit(Op.I2F, regs[0]), b.f32(step), b.f32(start))
        product = b.emit(Op.MUL, regs[0], b.const(integer_word(int(step))))
        return b.emit(Op.ADD, product, b.const(integer_word(int(start))))

    return call.emitter.map(call.output.shape, call.dtype, [Coordinate(0)], formula)


VIEWS: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.alias.default": _identity,
    "aten.clone.default": _identity,
    "aten.detach.default": _identity,
    "aten.copy.default": _copy,
    "aten.lift_fresh_copy.default": _identity,
    "aten.transpose.int": _transpose,
    "aten.permute.default": lambda call: permute(call.tensor(0), call.integers(1)),
    "aten.expand.default": lambda call: expand(call.tensor(0), call.integers(1)),
    "aten.unsqueeze.default": lambda call: unsqueeze(call.tensor(0), call.integer(1)),
    "aten.squeeze.default": lambda call: squeeze(call.tensor(0), range(len(call.tensor(0).shape))),
    "aten.squeeze.dim": lambda call: squeeze(call.tensor(0), [call.integer(1)]),
    "aten.squeeze.dims": lambda call: squeeze(call.tensor(0), call.integers(1)),
    "aten.view.default": lambda call: call.emitter.reshaped(call.tensor(0), call.integers(1)),
    "aten._unsafe_view.default": lambda call: call.emitter.reshaped(call.tensor(0), call.integers(1)),
    "aten.select.int": lambda call: select(call.tensor(0), call.integer(1), call.integer(2)),
    "aten.slice.Tensor": _slice,
    "aten.split_with_sizes.default": _split,
    "aten.split.Tensor": _equal_parts,
    "aten.unsafe_split.Tensor": _equal_parts,
    "aten.flip.default": lambda call: flip(call.tensor(0), call.integers(1)),
    "aten.full.default": _full,
    "aten.ones.default": lambda call: expand(scalar(1, call.dtype), call.output.shape),
    "aten.zeros.default": lambda call: expand(scalar(0, call.dtype), call.output.shape),
    "aten.full_like.default": _full,
    "aten.scalar_tensor.default": _scalar_tensor,
    "aten.arange.default": _arange,
    "aten.arange.start": _arange,
    "aten.arange.start_step": _arange,
}
