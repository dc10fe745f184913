"""Pooling: over one to three dimensions; the leading dimensions (examples, channels) are as they come.

A maximum is a fold with FMAX from -infinity; its index, the flat position in the channel, is found in a second fold.
An average is a fold with FADD from +0 over the taps, positions outside of the input counted as +0, and a division.
Gradients are folds over the windows that see a position, in ascending order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

from pol.arithmetic.registers import Float, Word, below, is_number, maximum, select, to_float
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.folds import MAXIMUM
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import Value, View, permute, view_of
from pol.graph.lowering.windows import Cover, Grid, Window, WindowPosition, uncovered
from pol.graph.node import MAX_BOUNDS
from pol.graph.tensor_type import DType, TensorType

NOWHERE = 0xFFFFFFFF
"""The word -1, an index that is no position."""


@dataclass(frozen=True)
class Pool:
    """The windows of a pooling and the dimensions before them."""

    leading: tuple[int, ...]
    windows: tuple[Window, ...]

    @classmethod
    def of(cls, call: Call, source: Sequence[int], result: Sequence[int], first: int, dilated: bool) -> Pool:
        """From the arguments kernel, stride, padding and dilation, which begin at `first`."""
        rank = _rank(call)
        kernel, padding = _each(call, first, rank, 1), _each(call, first + 2, rank, 0)
        strides = _each(call, first + 1, rank, 0)
        stride = kernel if call.argument(first + 1) in (None, ()) else strides
        dilation = _each(call, first + 3, rank, 1) if dilated else (1,) * rank
        if source[:-rank] != result[:-rank] or len(source) < rank:
            raise ProtocolError("the tensors of a pooling have different dimensions before the windows")
        numbers = zip(source[-rank:], kernel, stride, padding, dilation, result[-rank:], strict=True)
        return cls(tuple(source[:-rank]), tuple(Window(*window) for window in numbers))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.leading, *(window.outputs for window in self.windows))

    def seen(self, grid: Grid) -> tuple[list[WindowPosition], list[WindowPosition]]:
        """Leading coordinates, and the positions that the taps of an output see; adds all coordinates to the grid."""
        before = [grid.along(size) for size in self.leading]
        outputs = [grid.along(window.outputs) for window in self.windows]
        taps = [grid.over(window.taps) for window in self.windows]
        return before, [w.seen(output, tap) for w, output, tap in zip(self.windows, outputs, taps, strict=True)]

    def flat(self, positions: Sequence[WindowPosition]) -> WindowPosition:
        """The number of a position in the example's channel."""
        result = WindowPosition()
        for window, position in zip(self.windows, positions, strict=True):
            result = result * window.size + position
        return result

    def gradient(self, call: Call, arguments: Sequence[View], fills: Sequence[int], by_index: bool) -> Value:
        """Sum over the windows that see a position: of the first argument, `by_index` those whose second argument is
        the flat position; without it all windows of which a tap lies there."""
        covers = [Cover.of(Window(w.size, w.reach, w.stride, w.padding, 1, w.outputs)) for w in self.windows]
        folds = any(cover.terms > 1 for cover in covers)
        grid = Grid()
        before = [grid.along(size) for size in self.leading]
        pairs = [(grid.along(cover.quotients), grid.along(cover.window.stride)) for cover in covers]
        # Outputs descend with j: counted from the last one they ascend.
        terms = [grid.over(cover.terms) * -1 + (cover.terms - 1) for cover in covers]
        outputs = [cover.output(q, j) for cover, (q, _), j in zip(covers, pairs, terms, strict=True)]
        reads = []
        for view, fill in zip(arguments, fills, strict=True):
            read = grid.read(view, [*before, *outputs], fill, folds)
            bounds = list(read.bounds)
            if not by_index:
                for cover, (_, r), j in zip(covers, pairs, terms, strict=True):
                    bounds += grid.bound(cover.tap(r, j), cover.window.taps, folds)
            if len(bounds) > MAX_BOUNDS:
                raise call.unsupported("windows that overlap in more than two dimensions have no gradient")
            reads.append(NodeRead(read.view, fill, tuple(bounds)))
        here = self.flat([cover.position(q, r) for cover, (q, r) in zip(covers, pairs, strict=True)])

        def kept(value: Float, other: Float, index: Word, *coordinates: Word) -> Float:
            return select(index == grid.word(index, coordinates, here), value, other)

        def add(total: Float, g: Float, *place: Word) -> Float:
            added = total + g
            return kept(added, total, *place) if by_index else added

        def single(g: Float, *place: Word) -> Float:
            return kept(g, g.real(0.0), *place) if by_index else g

        inputs: list[Argument] = [*reads, *(grid.coordinates() if by_index else [])]
        if folds:
            result = call.emitter.fold(TensorType(DType.F32, grid.shape), grid.terms, 0, inputs, add)
        else:
            result = call.emitter.map(grid.shape, DType.F32, inputs, single)
        return uncovered(call.emitter, result, self.leading, covers)


def _rank(call: Call) -> int:
    """How many dimensions are pooled: `aten.max_pool2d_with_indices` pools 2."""
    return int(call.node.operation.partition("pool")[2][0])


def _each(call: Call, position: int, rank: int, default: int) -> tuple[int, ...]:
    """One integer per dimension; torch repeats a single one."""
    given = call.integers(position) or (default,)
    return given * rank if len(given) == 1 else given


@lowers(
    *(f"aten.max_pool{rank}d_with_indices.default" for rank in (2, 3)),
    defines="FMAX from -infinity over the taps; the index is that of the first greatest, or of the last NaN",
)
def _max_pool(call: Call) -> tuple[Value, Value]:
    source = call.floats(0)
    pool = Pool.of(call, source.shape, call.output.shape, 1, dilated=True)
    emitter = call.emitter
    grid = Grid()
    before, seen = pool.seen(grid)
    read = grid.read(source, [*before, *seen], MAXIMUM.neutral)
    greatest = emitter.fold(TensorType(DType.F32, grid.shape), grid.terms, MAXIMUM.neutral, [read], maximum)
    whole = view_of(emitter.reshaped(greatest, pool.outputs))

    def first(index: Word, x: Float, greatest: Float, *coordinates: Word) -> Word:
        is_fresh = index == -1
        is_there = is_number(x)
        hit = (x == greatest) & is_fresh
        hit |= is_there ^ 1
        for window, position in zip(pool.windows, seen, strict=True):
            if grid.bound(position, window.size):
                hit &= below(grid.word(index, coordinates, position), window.size)
        return select(hit, grid.word(index, coordinates, pool.flat(seen)), index)

    outputs = _outputs(grid, pool)
    arguments: list[Argument] = [read, grid.read(whole, outputs), *grid.coordinates()]
    index = emitter.fold(TensorType(DType.I32, grid.shape), grid.terms, NOWHERE, arguments, first, "index")
    return whole, emitter.reshaped(index, pool.outputs)


def _outputs(grid: Grid, pool: Pool) -> list[WindowPosition]:
    """The positions of the grid's own output."""
    places, number = [], 0
    for size in pool.outputs:
        places.append(WindowPosition() if size == 1 else WindowPosition(0, ((number, 1),)))
        number += size > 1
    return places


@lowers(
    *(f"aten.max_pool{rank}d_with_indices_backward.default" for rank in (2, 3)),
    defines="FADD from +0 over the windows whose index is the position",
)
def _max_pool_backward(call: Call) -> Value:
    # y[o] = x[index[o]]: a position gets g[o] of every window whose index it is.
    gradient = call.floats(0)
    index = call.emitter.view(call.shaped(7, gradient.shape))
    pool = Pool.of(call, call.tensor(1).shape, gradient.shape, 2, dilated=True)
    return pool.gradient(call, [gradient, index], [0, NOWHERE], by_index=True)


@lowers(
    *(f"aten.avg_pool{rank}d.default" for rank in (2, 3)),
    defines="FADD from +0 over the taps (+0 outside of the input), FDIV by the count or the divisor",
)
def _avg_pool(call: Call) -> Value:
    source = call.floats(0)
    pool = Pool.of(call, source.shape, call.output.shape, 1, dilated=False)
    total = _total(call, source, pool)
    return _divided(call, total, pool, call.flag(5, "count_include_pad", True), call.argument(6, "divisor_override"))


def _total(call: Call, source: View, pool: Pool) -> Value:
    grid = Grid()
    before, seen = pool.seen(grid)
    type_, read = TensorType(DType.F32, grid.shape), grid.read(source, [*before, *seen])
    total = call.emitter.fold(type_, grid.terms, 0, [read], add, "sum")
    return call.emitter.reshaped(total, pool.outputs)


def _divided(call: Call, value: Value, pool: Pool, padded: bool, divisor: object, part: str = "") -> Value:
    """FDIV by how many positions a window counts: all that it sees, with `padded` those of the padding too."""
    extents = [_extents(window, padded) for window in pool.windows]
    count = math.prod(extent[0] for extent in extents)
    if divisor is not None:
        if type(divisor) is not int or divisor == 0:
            raise ProtocolError(f"{divisor!r} cannot divide")
        count = divisor
    rank = len(pool.leading)
    arguments: list[Argument] = [value]
    if divisor is None and any(len(set(extent)) > 1 for extent in extents):
        arguments += [Coordinate(rank + number) for number in range(len(extents))]

    def formula(total: Float, *outputs: Word) -> Float:
        if not outputs:
            return total / float(count)
        sizes = total.word(1)
        for window, output in zip(pool.windows, outputs, strict=True):
            sizes *= _extent(window, padded, output)
        return total / to_float(sizes)

    return call.emitter.map(pool.outputs, DType.F32, arguments, formula, part)


def _extents(window: Window, padded: bool) -> list[int]:
    if not padded:
        return window.extents
    starts = [output * window.stride - window.padding for output in range(window.outputs)]
    return [min(window.taps, window.size + window.padding - start) for start in starts]


def _extent(window: Window, padded: bool, output: Word) -> Word:
    """One entry of `_extents`."""
    start = output * window.stride - window.padding
    end = start + window.taps
    limit = output.word(window.size + (window.padding if padded else 0))
    end = select(limit < end, limit, end)
    if not padded:
        start = select(start < 0, 0, start)
    return end - start


@lowers(
    *(f"aten.avg_pool{rank}d_backward.default" for rank in (2, 3)),
    defines="the gradients divided, FADD from +0 over the windows that see the position; three dimensions that "
    "overlap: over the last two, then over the first",
)
def _avg_pool_backward(call: Call) -> Value:
    # y[o] = sum of x[i] over its taps / count[o]: a position gets g[o] / count[o] of every window that sees it.
    gradient = call.floats(0)
    pool = Pool.of(call, call.tensor(1).shape, gradient.shape, 2, dilated=False)
    share = _divided(call, gradient, pool, call.flag(6), call.argument(7), "share")
    stored = call.emitter.stored(share)
    try:
        return pool.gradient(call, [stored], [0], by_index=False)
    except UnsupportedError:
        return _by_dimensions(call, pool, stored)


def _by_dimensions(call: Call, pool: Pool, share: View) -> Value:
    """The sum over windows in two rounds, since a read has few bounds: the last dimensions, then the first one."""
    first, *rest = pool.windows
    inner = Pool((*pool.leading, first.outputs), tuple(rest)).gradient(call, [share], [0], by_index=False)
    rank, depth = len(inner.shape), len(pool.leading)
    order = [*range(depth), *range(depth + 1, rank), depth]
    turned = call.emitter.view(permute(inner, order))
    result = Pool(turned.shape[:-1], (first,)).gradient(call, [turned], [0], by_index=False)
    return permute(result, [order.index(axis) for axis in range(rank)])
