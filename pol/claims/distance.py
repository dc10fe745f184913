"""Exact integer distances between states, as the chain compares them (docs/spec/verdict.md, "Distance").

Tensors are arrays of 32-bit words. All sums are exact; from 2^191 on they are INFINITE.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pol.arithmetic.primitives import Words
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.step_program import RANGE_BITS, Component, StepProgram
from pol.graph.tensor_type import LEAF_WORDS, DType, TensorType

INFINITE = (1 << 256) - 1
SATURATION = 1 << 191
UNEQUAL = 1 << 160
"""The distance of two integers that differ; sums over f32 words stay below it."""
_FRACTION_BITS = 40
BLOCK = 1 << 16
"""Words at a time: sums of 32-bit halves stay below 2^64 for up to 2^32 of them, and temporaries stay in the cache."""
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def saturating_sum(parts: Iterable[int]) -> int:
    """The sum of distances; INFINITE if a part is, or if it would reach 2^191."""
    total = 0
    for part in parts:
        total += part
        if total >= SATURATION:
            return INFINITE
    return total


def leaf_distances(dtype: DType, x: Words, y: Words, scale: int = 0) -> list[int]:
    """The distance of each leaf (64 words in row-major order) of two tensors of one type."""
    _require_equal_shapes(x, y)
    x, y = x.reshape(-1), y.reshape(-1)
    sums: list[int] = []
    for low in range(0, x.size, BLOCK):
        sums += _leaf_sums(dtype, x[low : low + BLOCK], y[low : low + BLOCK], scale)
    return sums


def tensor_distance(dtype: DType, x: Words, y: Words, scale: int = 0) -> int:
    """The distance of two tensors of one type. Raises ProtocolError: the shapes differ."""
    _require_equal_shapes(x, y)
    x, y = x.reshape(-1), y.reshape(-1)
    blocks = range(0, x.size, BLOCK)
    return saturating_sum(_block_sum(dtype, x[low : low + BLOCK], y[low : low + BLOCK], scale) for low in blocks)


def slot_distances(program: StepProgram, x: Sequence[Words], y: Sequence[Words], component: Component) -> list[int]:
    """The distance of each slot of two states; slots of another component count as 0."""
    require_state(program, x)
    require_state(program, y)
    return [
        tensor_distance(slot.type.dtype, a, b, slot.scale) if slot.component == component else 0
        for slot, a, b in zip(program.slots, x, y, strict=True)
    ]


def component_distances(program: StepProgram, x: Sequence[Words], y: Sequence[Words]) -> tuple[int, int, int]:
    """The distances of two states over parameters, buffers and optimizer state."""
    parameter, buffer, optimizer = (
        saturating_sum(slot_distances(program, x, y, component))
        for component in (Component.PARAMETER, Component.BUFFER, Component.OPTIMIZER)
    )
    return parameter, buffer, optimizer


def require_state(program: StepProgram, state: Sequence[Words]) -> None:
    """Check that ``state`` has a tensor of words of the right shape for every slot."""
    if len(state) != len(program.slots):
        fault = Fault.MISSING_TENSOR if len(state) < len(program.slots) else Fault.EXTRA_TENSOR
        problem = f"a state of {len(state)} tensors, but the program has {len(program.slots)} slots"
        raise EvidenceError(fault, problem)
    for index, (slot, words) in enumerate(zip(program.slots, state, strict=True)):
        require_words(slot.type, words, f"state slot {index}")


def require_distances(program: StepProgram, state: Sequence[Words], names: Sequence[str]) -> None:
    """Check that every number of a first state that may change has a distance; otherwise no segment can be accepted."""
    for position, (words, name) in enumerate(zip(state, names, strict=True)):
        if not program.has_distances(position, words):
            slot = program.slots[position]
            raise ProtocolError(
                f"{name} of the first state holds a number that isn't finite or is 2^{RANGE_BITS - slot.scale} or "
                "more: it has no distance, so no segment of this training could be accepted. Don't stake on it"
            )


def require_words(expected: TensorType, words: Words, what: str) -> None:
    """Check that ``words`` is an array of 32-bit words of the expected shape. Raises EvidenceError: it isn't."""
    if words.dtype != np.uint32 or words.shape != tuple(expected.shape):
        shape = tuple(expected.shape)
        fault = Fault.WRONG_SHAPE if words.dtype == np.uint32 else Fault.WRONG_DTYPE
        problem = f"{what} is {words.dtype} of shape {words.shape}, expected words of shape {shape}"
        raise EvidenceError(fault, problem)


def _require_equal_shapes(x: Words, y: Words) -> None:
    if x.shape != y.shape or x.dtype != np.uint32 or y.dtype != np.uint32:
        raise ProtocolError(f"no distance between {x.dtype} {x.shape} and {y.dtype} {y.shape}")


def differences(x: Words, y: Words, scale: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """``|fix(x) - fix(y)|`` per f32 word (0 where it is infinite), and which pairs are infinitely far apart.

    A word is at distance 0 from itself, unless it is NaN.
    """
    with np.errstate(invalid="ignore"):
        a, b = x.view(np.float32).astype(np.float64), y.view(np.float32).astype(np.float64)
        bound = float(1 << (RANGE_BITS - scale))
        finite = (np.abs(a) < bound) & (np.abs(b) < bound)
        same = (x == y) & ~np.isnan(a)
    # A binary32 times a power of two is exact in binary64, and below 2^63, so both casts are exact as well.
    unit = float(1 << (_FRACTION_BITS + scale))
    i = np.trunc(np.where(finite, a, 0.0) * unit).astype(np.int64)
    j = np.trunc(np.where(finite, b, 0.0) * unit).astype(np.int64)
    u, v = i.view(np.uint64), j.view(np.uint64)
    # The true difference is below 2^64, so arithmetic modulo 2^64 gives it exactly.
    return np.where(i >= j, u - v, v - u), ~(finite | same)


def squares(d: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
    """``d * d`` as four columns of weight 2^0, 2^32, 2^64, 2^96, each entry below 2^34; `sum_columns` adds them up."""
    low, high = d & _LOW, d >> _SHIFT
    ll, lh, hh = low * low, low * high, high * high
    return [ll & _LOW, (ll >> _SHIFT) + 2 * (lh & _LOW), 2 * (lh >> _SHIFT) + (hh & _LOW), hh >> _SHIFT]


def sum_columns(columns: Sequence[NDArray[np.uint64]]) -> int:
    """The exact sum of at most `BLOCK` numbers that are given as columns of weight 2^0, 2^32, 2^64 and so on."""
    return sum(int(column.sum(dtype=np.uint64)) << 32 * i for i, column in enumerate(columns))


def _block_sum(dtype: DType, x: Words, y: Words, scale: int) -> int:
    if dtype != DType.F32:
        return UNEQUAL * int(np.count_nonzero(x != y))
    d, infinite = differences(x, y, scale)
    if bool(infinite.any()):
        return INFINITE
    return sum_columns(squares(d))


def _leaf_sums(dtype: DType, x: Words, y: Words, scale: int) -> list[int]:
    starts = np.arange(0, x.size, LEAF_WORDS)
    if dtype != DType.F32:
        return [UNEQUAL * unequal for unequal in np.add.reduceat(x != y, starts, dtype=np.int64).tolist()]
    d, infinite = differences(x, y, scale)
    columns = [np.add.reduceat(column, starts).tolist() for column in squares(d)]
    is_infinite = np.logical_or.reduceat(infinite, starts).tolist()
    return [
        INFINITE if bad else c0 + (c1 << 32) + (c2 << 64) + (c3 << 96)
        for bad, c0, c1, c2, c3 in zip(is_infinite, *columns, strict=True)
    ]
