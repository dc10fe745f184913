"""Comparison of two sets of named tensors, from files or recorded checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pol.commitments.array import ArrayType, Bytes
from pol.training.record.recorded_run import RecordedRun, is_run, open_run, split_step
from pol.training.state.plain_data import name_in_model
from pol.training.storage.tensor_folder import open_tensors

if TYPE_CHECKING:
    from pol.training.storage.stored_checkpoint import StoredCheckpoint
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pol.commitments.array import ElementType
from pol.errors import ProtocolError

BLOCK = 1 << 20
"""Elements that are compared at a time."""

_PLAIN = {
    ElementType.F64: "<f8",
    ElementType.F32: "<f4",
    ElementType.F16: "<f2",
    ElementType.C64: "<c8",
    ElementType.I64: "<i8",
    ElementType.I32: "<i4",
    ElementType.I16: "<i2",
    ElementType.I8: "|i1",
    ElementType.U64: "<u8",
    ElementType.U32: "<u4",
    ElementType.U16: "<u2",
    ElementType.U8: "|u1",
    ElementType.BOOL: "|u1",
}


@dataclass(frozen=True)
class TensorDistance:
    """The difference of two arrays of one shape.

    differing: elements whose bytes differ (values, if the element types differ). l2, linf: norms of the difference;
    infinite where a number stands against one that isn't finite, or NaN against anything but the same bits.
    relative: l2 over the norm of the first array; infinite if that one is zero and the difference isn't.
    position: where the difference is largest, values: what stands there in both. None if nothing differs.
    """

    elements: int
    differing: int
    l2: float
    linf: float
    relative: float
    position: tuple[int, ...] | None
    values: tuple[complex | float | int, complex | float | int] | None


def measure_difference(a: ArrayType, b: ArrayType, blocks: Iterable[tuple[Bytes, Bytes]]) -> TensorDistance:
    """The distance of two arrays that are given in blocks of `BLOCK` elements, of which the last may have fewer."""
    if a.shape != b.shape:
        raise ProtocolError(f"no distance between the shapes {a.shape} and {b.shape}")
    low, differing, norm, size, largest, where = 0, 0, 0.0, 0.0, -1.0, -1
    values: tuple[complex | float | int, complex | float | int] | None = None
    for x, y in blocks:
        unequal, gaps, numbers = _block(a.element, b.element, x, y)
        wide = np.complex128 if numbers.dtype.kind == "c" else np.float64
        size = math.hypot(size, _norm(np.abs(numbers.astype(wide))))
        if unequal.any():
            differing += int(np.count_nonzero(unequal))
            norm = math.hypot(norm, _norm(gaps))
            gaps = np.where(unequal, gaps, -1.0)  # two zeros of different sign are 0 apart and still differ
            peak = int(np.argmax(gaps))
            if gaps[peak] > largest:
                largest, where = float(gaps[peak]), low + peak
                values = numbers[peak].item(), values_of(b.element, y)[peak].item()
        low += numbers.size
    if where < 0:
        return TensorDistance(low, 0, 0.0, 0.0, 0.0, None, None)
    relative = norm / size if 0 < size < math.inf else 0.0 if norm == 0 else math.inf
    position = tuple(int(i) for i in np.unravel_index(where, a.shape)) if a.shape else ()
    return TensorDistance(low, differing, norm, largest, relative, position, values)


def values_of(element: ElementType, data: Bytes) -> npt.NDArray[np.generic]:
    """Elements as numbers of a type that holds each of them exactly."""
    if element in _PLAIN:
        return _aligned(data, _PLAIN[element])
    if element is ElementType.BF16:
        return (_aligned(data, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    table: npt.NDArray[np.generic] = _EIGHT_BITS[element][data]
    return table


def _aligned(data: npt.NDArray[np.uint8], code: str) -> npt.NDArray[np.generic]:
    # A stranger's file may put a tensor anywhere; a view at an odd address is fine for NumPy.
    return np.frombuffer(data.data, np.dtype(code)) if data.size else np.empty(0, np.dtype(code))


def _block(
    a: ElementType, b: ElementType, left: Bytes, right: Bytes
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.generic]]:
    """Which elements differ, how far, and the first array's numbers."""
    x, y = values_of(a, left), values_of(b, right)
    if a is b:
        code = f"<u{a.size}"
        unequal = np.asarray(_aligned(left, code) != _aligned(right, code))
    else:
        with np.errstate(invalid="ignore"):
            unequal = ~((x == y) | ((x != x) & (y != y)))  # noqa: PLR0124  # NaN is what differs from itself
    if not unequal.any():
        return unequal, np.zeros(x.size), x
    with np.errstate(invalid="ignore", over="ignore"):
        if x.dtype.kind in "iu" and y.dtype.kind in "iu":
            gaps = _integer_gaps(x, y)
        else:
            wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
            gaps = np.abs(x.astype(wide) - y.astype(wide))
            gaps[x == y] = 0.0  # infinities
        gaps[np.isnan(gaps)] = math.inf
    gaps[~unequal] = 0.0
    return unequal, gaps, x


def _integer_gaps(x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Exact differences of integers up to 64 bits, rounded once."""
    if x.dtype.itemsize < 8 and y.dtype.itemsize < 8:
        return np.abs(x.astype(np.int64) - y.astype(np.int64)).astype(np.float64)
    if x.dtype != y.dtype:
        return np.array([abs(int(i) - int(j)) for i, j in zip(x.tolist(), y.tolist(), strict=True)], np.float64)
    # The difference of two 64-bit integers fits 64 bits without a sign.
    high, low = np.maximum(x, y).view(np.uint64), np.minimum(x, y).view(np.uint64)
    return np.asarray(high - low, np.float64)


def _norm(gaps: npt.NDArray[np.float64]) -> float:
    """The Euclidean norm, without overflow on the way."""
    peak = float(gaps.max(initial=0.0))
    if peak == 0 or not math.isfinite(peak):
        return 0.0 if peak == 0 else math.inf
    return peak * math.sqrt(float(np.sum(np.square(gaps / peak))))


def _minifloats(exponent_bits: int, mantissa_bits: int, bias: int, *, infinities: bool) -> npt.NDArray[np.float64]:
    """The 256 values of an 8-bit format (OCP 8-bit floating point, E4M3 and E5M2)."""
    values = np.empty(256)
    for code in range(256):
        exponent, mantissa = (code >> mantissa_bits) % (1 << exponent_bits), code % (1 << mantissa_bits)
        fraction = mantissa / (1 << mantissa_bits)
        value = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
        if infinities and exponent == (1 << exponent_bits) - 1:
            value = math.nan if mantissa else math.inf
        elif not infinities and code % 128 == 127:
            value = math.nan
        values[code] = -value if code >> 7 else value
    return values


_EIGHT_BITS = {
    ElementType.F8_E4M3: _minifloats(4, 3, 7, infinities=False),
    ElementType.F8_E5M2: _minifloats(5, 2, 15, infinities=True),
    ElementType.F8_E8M0: np.array([math.ldexp(1, code - 127) for code in range(255)] + [math.nan]),
}


WEIGHTS = ("parameters/", "buffers/")
"""The components of a checkpoint that a model's file holds as well."""


@dataclass(frozen=True)
class NamedTensors:
    """Named tensors. ``roots`` are known for recorded ones: equal roots need no look at the tensors."""

    label: str
    types: Mapping[str, ArrayType]
    roots: Mapping[str, bytes]
    pieces: Callable[[str, int], Iterator[Bytes]]
    close: Callable[[], None]
    run: RecordedRun | None = None
    saved: StoredCheckpoint | None = None


@dataclass(frozen=True)
class TensorComparison:
    """One name. ``how``: equal, differs, another type (a distance is given if the shapes agree), missing or extra."""

    name: str
    how: str
    distance: TensorDistance | None = None


def open_named_tensors(text: str) -> NamedTensors:
    """The tensors at a path, or at ``PATH@STEP`` in a record. Raises UnsupportedError: a pickled checkpoint."""
    place, step = split_step(text)
    if is_run(place):
        return recorded_tensors(open_run(place), step, place)
    tensors = open_tensors(Path(text))
    return NamedTensors(text, tensors.types, {}, tensors.pieces, lambda: None)


def recorded_tensors(run: RecordedRun, step: int | None, label: str) -> NamedTensors:
    """A recorded checkpoint; each tensor is read, and compared with its root, when it is asked for."""
    checkpoint = run.checkpoint(step)
    saved = run.document(checkpoint)
    tensors = run.tensors(saved)
    roots = {entry.name: entry.content for entry in saved.entries if entry.type is not None}
    label = f"{label}@{checkpoint.step}"
    return NamedTensors(label, saved.types, roots, tensors.pieces, tensors.close, run, saved)


def aligned(a: NamedTensors, b: NamedTensors) -> tuple[NamedTensors, NamedTensors, int]:
    """Both sides with names that mean the same, and how many tensors of a record have no counterpart in any file.

    A file holds a model's weights under their own names, a checkpoint holds them as ``parameters/...``.
    """
    if (a.saved is None) == (b.saved is None):
        return a, b, 0
    if a.saved is None:
        b, a, left = aligned(b, a)
        return a, b, left
    own = {name_in_model(name): name for name in a.types if name.startswith(WEIGHTS)}
    weights = replace(
        a,
        types={name: a.types[full] for name, full in own.items()},
        roots={name: a.roots[full] for name, full in own.items()},
        pieces=lambda name, size: a.pieces(own[name], size),
    )
    return weights, b, len(a.types) - len(own)


def compare_tensors(a: NamedTensors, b: NamedTensors) -> Iterator[TensorComparison]:
    """Every tensor of both sides, in the order of names."""
    try:
        for name in sorted(a.types.keys() | b.types.keys(), key=str.encode):
            if name not in b.types:
                yield TensorComparison(name, "missing")
            elif name not in a.types:
                yield TensorComparison(name, "extra")
            else:
                yield _compare(a, b, name)
    finally:
        a.close()
        b.close()


def _compare(a: NamedTensors, b: NamedTensors, name: str) -> TensorComparison:
    if a.types[name].shape != b.types[name].shape:
        return TensorComparison(name, "another type")
    if name in a.roots and a.roots[name] == b.roots.get(name):
        return TensorComparison(name, "equal")
    blocks = (side.pieces(name, BLOCK * side.types[name].element.size) for side in (a, b))
    distance = measure_difference(a.types[name], b.types[name], zip(*blocks, strict=True))
    if a.types[name] != b.types[name]:
        return TensorComparison(name, "another type", distance)
    return TensorComparison(name, "differs" if distance.differing else "equal", distance)
