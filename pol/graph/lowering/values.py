"""What stands for a tensor during lowering: a view of stored words, one repeated word, or the step number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from pol.arithmetic.registers import WideIntegerError
from pol.errors import ProtocolError
from pol.graph.node import Source
from pol.graph.tensor_type import DType, TensorType, row_major

NAN = 0x7FC00000
"""The word of the one NaN."""


@dataclass(frozen=True)
class View:
    """A source tensor seen with another shape: word `base + step_stride * t + sum strides_i * coord_i`."""

    source: Source
    index: int
    type: TensorType
    shape: tuple[int, ...]
    base: int
    strides: tuple[int, ...]
    step_stride: int = 0

    @property
    def dtype(self) -> DType:
        """How its words are read."""
        return self.type.dtype

    @property
    def is_whole(self) -> bool:
        """Whether it shows its source exactly as it is stored."""
        whole = whole_view(self.source, self.index, self.type)
        return self == whole


@dataclass(frozen=True)
class Fill:
    """A tensor of one repeated word."""

    word: int
    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StepNumber:
    """The number of the step, repeated."""

    shape: tuple[int, ...]
    dtype: DType = DType.I32


Value: TypeAlias = View | Fill | StepNumber


def whole_view(source: Source, index: int, type_: TensorType) -> View:
    """The tensor as it is stored."""
    return View(source, index, type_, type_.shape, 0, row_major(type_.shape))


def view_of(value: Value) -> View:
    """A value that is a view because it came from one."""
    if not isinstance(value, View):
        raise AssertionError(f"{value} is no view")
    return value


def float_word(value: float) -> int:
    """The word of the binary32 number nearest to a binary64 one; NaN is canonical."""
    if math.isnan(value):
        return NAN
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))


def integer_word(value: int) -> int:
    """The word of an i32; WideIntegerError if it does not fit."""
    if not -(2**31) <= value < 2**31:
        raise WideIntegerError(f"the integer {value} does not fit in 32 bits: write a smaller one, or a float")
    return value % 2**32


def scalar(value: float, dtype: DType) -> Fill:
    """A Python number as a scalar tensor of a word type."""
    word = float_word(float(value)) if dtype is DType.F32 else integer_word(int(value))
    return Fill(word, dtype, ())


def axis_index(axis: int, rank: int) -> int:
    """A dimension counted from the front; ProtocolError if there is none such."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise ProtocolError(f"there is no dimension {axis} in a tensor of rank {rank}")
    return axis % max(rank, 1)


def permute(value: Value, axes: Sequence[int]) -> Value:
    """Dimensions in another order."""
    order = [axis_index(axis, len(value.shape)) for axis in axes]
    if sorted(order) != list(range(len(value.shape))):
        raise ProtocolError(f"{tuple(axes)} is not a permutation of the dimensions of {value.shape}")
    shape = tuple(value.shape[axis] for axis in order)
    if isinstance(value, View):
        return replace(value, shape=shape, strides=tuple(value.strides[axis] for axis in order))
    return replace(value, shape=shape)


def expand(value: Value, shape: Sequence[int]) -> Value:
    """Broadcast to `shape`; -1 keeps a dimension."""
    lead = len(shape) - len(value.shape)
    if lead < 0:
        raise ProtocolError(f"{value.shape} cannot be expanded to {tuple(shape)}")
    old = (1,) * lead + value.shape
    new = tuple(size if wanted == -1 else wanted for size, wanted in zip(old, shape, strict=True))
    if any(size not in (1, wanted) for size, wanted in zip(old, new, strict=True)):
        raise ProtocolError(f"{value.shape} cannot be expanded to {tuple(shape)}")
    if isinstance(value, View):
        strides = (0,) * lead + value.strides
        moved = tuple(0 if size == 1 else stride for size, stride in zip(old, strides, strict=True))
        return replace(value, shape=new, strides=moved)
    return replace(value, shape=new)


def unsqueeze(value: Value, axis: int) -> Value:
    """A dimension of size 1 more."""
    place = axis_index(axis, len(value.shape) + 1)
    shape = (*value.shape[:place], 1, *value.shape[place:])
    if isinstance(value, View):
        return replace(value, shape=shape, strides=(*value.strides[:place], 0, *value.strides[place:]))
    return replace(value, shape=shape)


def squeeze(value: Value, axes: Sequence[int]) -> Value:
    """Without those of the given dimensions that have size 1."""
    gone = {axis_index(axis, len(value.shape)) for axis in axes} if value.shape else set()
    kept = [axis for axis, size in enumerate(value.shape) if axis not in gone or size != 1]
    shape = tuple(value.shape[axis] for axis in kept)
    if isinstance(value, View):
        return replace(value, shape=shape, strides=tuple(value.strides[axis] for axis in kept))
    return replace(value, shape=shape)


def at_index(value: Value, axis: int, index: int) -> Value:
    """One position along a dimension, which disappears."""
    place = axis_index(axis, len(value.shape))
    size = value.shape[place]
    if not -size <= index < size:
        raise ProtocolError(f"index {index} is not in a dimension of size {size}")
    return squeeze(cut(value, place, index % size, index % size + 1), [place])


def cut(value: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """Every `step`-th position of `start .. stop-1` along a dimension; the range must lie inside it."""
    place = axis_index(axis, len(value.shape))
    if not 0 <= start < stop <= value.shape[place] or step < 1:
        raise ProtocolError(f"{start}:{stop}:{step} is not a range inside a dimension of size {value.shape[place]}")
    shape = (*value.shape[:place], -(-(stop - start) // step), *value.shape[place + 1 :])
    if not isinstance(value, View):
        return replace(value, shape=shape)
    strides = list(value.strides)
    base = value.base + start * strides[place]
    strides[place] *= step
    return replace(value, shape=shape, base=base, strides=tuple(strides))


def diagonal(value: Value, offset: int, first: int, second: int) -> Value:
    """The places where dimension `second` counts `offset` more than `first`, as the last dimension; both disappear."""
    rank = len(value.shape)
    row, column = axis_index(first, rank), axis_index(second, rank)
    if rank < 2 or row == column:
        raise ProtocolError(f"a tensor of shape {value.shape} has no diagonal of dimensions {first} and {second}")
    down, right = max(-offset, 0), max(offset, 0)
    count = min(value.shape[row] - down, value.shape[column] - right)
    if count < 1:
        raise ProtocolError(f"a tensor of shape {value.shape} has no diagonal {offset}")
    kept = [axis for axis in range(rank) if axis not in {row, column}]
    shape = (*(value.shape[axis] for axis in kept), count)
    if not isinstance(value, View):
        return replace(value, shape=shape)
    base = value.base + down * value.strides[row] + right * value.strides[column]
    strides = (*(value.strides[axis] for axis in kept), value.strides[row] + value.strides[column])
    return replace(value, shape=shape, base=base, strides=strides)


def unfolded(value: Value, axis: int, size: int, step: int) -> Value:
    """Parts of `size` positions along a dimension, every `step` positions one; the parts are the last dimension."""
    if not value.shape and size == 1:
        return unsqueeze(value, 0)
    place = axis_index(axis, len(value.shape))
    if not 0 < size <= value.shape[place] or step < 1:
        raise ProtocolError(f"a dimension of size {value.shape[place]} has no parts of {size} positions, {step} apart")
    count = (value.shape[place] - size) // step + 1
    shape = (*value.shape[:place], count, *value.shape[place + 1 :], size)
    if not isinstance(value, View):
        return replace(value, shape=shape)
    own = value.strides[place]
    return replace(value, shape=shape, strides=(*value.strides[:place], own * step, *value.strides[place + 1 :], own))


def strided(value: Value, shape: Sequence[int], strides: Sequence[int], offset: int) -> Value:
    """Positions `offset + sum strides_i * coord_i` of a value with one dimension, which they must not leave."""
    (size,) = value.shape
    reach = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    if offset < 0 or any(stride < 0 for stride in strides) or offset + reach >= size or any(n < 1 for n in shape):
        raise ProtocolError(f"{tuple(shape)} with strides {tuple(strides)} from {offset} leaves {size} positions")
    if not isinstance(value, View):
        return replace(value, shape=tuple(shape))
    (own,) = value.strides
    return replace(
        value, shape=tuple(shape), base=value.base + offset * own, strides=tuple(stride * own for stride in strides)
    )


def slice_range(size: int, start: int, stop: int) -> tuple[int, int]:
    """First position and the one after the last of a Python slice of a dimension."""
    first, last = (max(0, min(at + size if at < 0 else at, size)) for at in (start, stop))
    return first, last


def flip(value: Value, axes: Sequence[int]) -> Value:
    """The other way round along the given dimensions."""
    if isinstance(value, View):
        places = {axis_index(axis, len(value.shape)) for axis in axes} if value.shape else set()
        strides = tuple(-stride if place in places else stride for place, stride in enumerate(value.strides))
        base = value.base + sum((value.shape[place] - 1) * value.strides[place] for place in places)
        return replace(value, base=base, strides=strides)
    return value


def reshape(value: Value, shape: Sequence[int]) -> Value | None:
    """The same words in row-major order under another shape, or None where strides cannot say it."""
    target = tuple(shape)
    if -1 in target:
        known = math.prod(max(size, 1) for size in target)
        target = tuple(math.prod(value.shape) // known if size == -1 else size for size in target)
    if math.prod(target) != math.prod(value.shape) or any(size < 1 for size in target):
        raise ProtocolError(f"{value.shape} cannot become {tuple(shape)}")
    if not isinstance(value, View):
        return replace(value, shape=target)
    strides = restride(value.shape, value.strides, target)
    return None if strides is None else replace(value, shape=target, strides=strides)


def restride(shape: tuple[int, ...], strides: Sequence[int], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides over the target shape that read the same words in the same order, or None if there are none.

    Each run of dimensions that is evenly spaced in memory may be cut anew.
    """
    runs: list[tuple[int, int]] = []  # (elements, stride of the last dimension), from the back
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, stride))
    result = []
    position, used = 0, 1
    for size in reversed(target):
        if size == 1:
            result.append(0)
            continue
        elements, stride = runs[position]
        result.append(stride * used)
        used *= size
        if elements % used:
            return None
        if used == elements:
            position, used = position + 1, 1
    return tuple(reversed(result))
