"""Pooling over one to three dimensions; the leading dimensions (examples, channels) are as they come.

A maximum is a fold with FMAX from -infinity; its index, the flat position in the channel, is found in a second fold.
An average is a fold with FADD from +0 over the taps, positions outside of the input counted as +0, and a division.
Gradients are folds over the windows that see a position, in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, Read
from pol.graph.lowering.folds import MAXIMUM
from pol.graph.lowering.values import Value, View
from pol.graph.lowering.windows import Cover, Grid, Position, Window, uncovered
from pol.graph.node import MAX_BOUNDS
from pol.graph.tensor_type import DType, TensorType

NOWHERE = 0xFFFFFFFF


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
        if len(source) != len(result) or len(source) < rank:
            raise ProtocolError("the tensors of a pooling have different ranks")
        numbers = zip(source[-rank:], kernel, stride, padding, dilation, result[-rank:], strict=True)
        return cls(tuple(source[:-rank]), tuple(Window(*window) for window in numbers))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.leading, *(window.outputs for window in self.windows))

    def seen(self, grid: Grid) -> tuple[list[Position], list[Position]]:
        """Leading coordinates, and the positions that the taps of an output see; adds all coordinates to the grid."""
        before = [grid.along(size) for size in self.leading]
        outputs = [grid.along(window.outputs) for window in self.windows]
        taps = [grid.over(window.taps) for window in self.windows]
        return before, [w.seen(output, tap) for w, output, tap in zip(self.windows, outputs, taps, strict=True)]

    def flat(self, positions: Sequence[Position]) -> Position:
        """The number of a position in the example's channel."""
        result = Position()
        for window, position in zip(self.windows, positions, strict=True):
            result = result * window.size + position
        return result

    def gradient(self, call: Call, arguments: Sequence[View], fills: Sequence[int], select: bool) -> Value:
        """Sum over the windows that see a position: of the first argument, where `select` those whose second argument
        is the flat position; without it all windows of which a tap lies there."""
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
            if not select:
                for cover, (_, r), j in zip(covers, pairs, terms, strict=True):
                    bounds += grid.bound(cover.tap(r, j), cover.window.taps, folds)
            if len(bounds) > MAX_BOUNDS:
                raise call.unsupported("windows that overlap in more than two dimensions have no gradient")
            reads.append(Read(read.view, fill, tuple(bounds)))
        here = self.flat([cover.position(q, r) for cover, (q, r) in zip(covers, pairs, strict=True)])

        def term(b: Builder, accumulator: int | None, regs: list[int]) -> int:
            before = b.f32(0.0) if accumulator is None else accumulator
            value = regs[0] if accumulator is None else b.emit(Op.FADD, accumulator, regs[0])
            if not select:
                return value if accumulator is not None else b.emit(Op.MOV, value)
            own = b.emit(Op.EQ, regs[1], grid.register(b, regs[2:], here))
            return b.emit(Op.SELECT, own, value, before)

        inputs: list[Argument] = [*reads, *(grid.coordinates() if select else [])]
        if folds:
            result = call.emitter.fold(TensorType(DType.F32, grid.shape), grid.terms, 0, inputs, term)
        else:
            result = call.emitter.map(grid.shape, DType.F32, inputs, lambda b, regs: term(b, None, regs))
        return uncovered(call.emitter, result, self.leading, covers)


def _rank(call: Call) -> int:
    """How many dimensions are pooled: `aten.max_pool2d_with_indices` pools 2."""
    return int(call.node.operation.partition("pool")[2][0])


def _each(call: Call, position: int, rank: int, default: int) -> tuple[int, ...]:
    """One integer per dimension; torch repeats a single one."""
    given = call.integers(position) or (default,)
    return given * rank if len(given) == 1 else given


def _view(call: Call, position: int) -> View:
    value = call.tensor(position)
    if value.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    return value if isinstance(value, View) else call.emitter.stored(value)


def _max_pool(call: Call) -> tuple[Value, Value]:
    """FMAX over the taps; the index is that of the first tap equal to it, or of the last NaN."""
    source = _view(call, 0)
    pool = Pool.of(call, source.shape, call.output.shape, 1, dilated=True)
    emitter = call.emitter
    grid = Grid()
    before, seen = pool.seen(grid)
    read = grid.read(source, [*before, *seen], MAXIMUM.neutral)
    greatest = emitter.fold(
        TensorType(DType.F32, grid.shape),
        grid.terms,
        MAXIMUM.neutral,
        [read],
        lambda b, accumulator, regs: b.emit(Op.FMAX, accumulator, *regs),
    )
    whole = emitter.reshaped(greatest, pool.outputs)
    if not isinstance(whole, View):
        raise AssertionError("a node gives a view")

    def first(b: Builder, accumulator: int, regs: list[int]) -> int:
        value, maximum, *coordinates = regs
        fresh = b.emit(Op.EQ, accumulator, b.const(NOWHERE))
        number = b.emit(Op.FEQ, value, value)
        hit = b.emit(Op.AND, b.emit(Op.FEQ, value, maximum), fresh)
        hit = b.emit(Op.OR, hit, b.emit(Op.XOR, number, b.const(1)))
        for window, position in zip(pool.windows, seen, strict=True):
            if grid.bound(position, window.size):
                inside = b.emit(Op.LTU, grid.register(b, coordinates, position), b.const(window.size))
                hit = b.emit(Op.AND, hit, inside)
        return b.emit(Op.SELECT, hit, grid.register(b, coordinates, pool.flat(seen)), accumulator)

    outputs = _outputs(grid, pool)
    arguments: list[Argument] = [read, grid.read(whole, outputs), *grid.coordinates()]
    index = emitter.fold(TensorType(DType.I32, grid.shape), grid.terms, NOWHERE, arguments, first, "index")
    return whole, emitter.reshaped(index, pool.outputs)


def _outputs(grid: Grid, pool: Pool) -> list[Position]:
    """The positions of the grid's own output."""
    places, number = [], 0
    for size in pool.outputs:
        places.append(Position() if size == 1 else Position(0, ((number, 1),)))
        number += size > 1
    return places


def _max_pool_backward(call: Call) -> Value:
    """The sum of the gradients of the windows whose index is the position."""
    gradient, index = _view(call, 0), call.tensor(7)
    if not isinstance(index, View):
        index = call.emitter.stored(index)
    pool = Pool.of(call, call.tensor(1).shape, gradient.shape, 2, dilated=True)
    return pool.gradient(call, [gradient, index], [0, NOWHERE], select=True)


def _avg_pool(call: Call) -> Value:
    source = _view(call, 0)
    pool = Pool.of(call, source.shape, call.output.shape, 1, dilated=False)
    total = _total(call, source, pool)
    return _divided(call, total, pool, call.flag(5, "count_include_pad", True), call.argument(6, "divisor_override"))


def _total(call: Call, source: View, pool: Pool) -> Value:
    grid = Grid()
    before, seen = pool.seen(grid)
    total = call.emitter.fold(
        TensorType(DType.F32, grid.shape),
        grid.terms,
        0,
        [grid.read(source, [*before, *seen])],
        lambda b, accumulator, regs: b.emit(Op.FADD, accumulator, *regs),
        "sum",
    )
    return call.emitter.reshaped(total, pool.outputs)


def _divided(call: Call, value: Value, pool: Pool, padded: bool, divisor: object, part: str = "") -> Value:
    """FDIV by how many positions a window counts: all that it sees, with `padded` those of the padding too."""
    extents = [_extents(window, padded) for window in pool.windows]
    count = 1
    for extent in extents:
        count *= extent[0]
    if divisor is not None:
        if type(divisor) is not int or divisor == 0:
            raise ProtocolError(f"{divisor!r} cannot divide")
        count = divisor
    rank = len(pool.leading)
    arguments: list[Argument] = [value]
    if divisor is None and any(len(set(extent)) > 1 for extent in extents):
        arguments += [Coordinate(rank + number) for number in range(len(extents))]

    def formula(b: Builder, regs: list[int]) -> int:
        if len(regs) == 1:
            return b.emit(Op.FDIV, regs[0], b.f32(float(count)))
        sizes = b.const(1)
        for window, output in zip(pool.windows, regs[1:], strict=True):
            sizes = b.emit(Op.MUL, sizes, _extent(b, window, padded, output))
        return b.emit(Op.FDIV, regs[0], b.emit(Op.I2F, sizes))

    return call.emitter.map(pool.outputs, DType.F32, arguments, formula, part)


def _extents(window: Window, padded: bool) -> list[int]:
    if not padded:
        return window.extents
    starts = [output * window.stride - window.padding for output in range(window.outputs)]
    return [min(window.taps, window.size + window.padding - start) for start in starts]


def _extent(b: Builder, window: Window, padded: bool, output: int) -> int:
    """Register of one entry of `_extents`."""
    start = b.emit(Op.MUL, output, b.const(window.stride))
    start = b.emit(Op.SUB, start, b.const(window.padding))
    end = b.emit(Op.ADD, start, b.const(window.taps))
    limit = b.const(window.size + (window.padding if padded else 0))
    end = b.emit(Op.SELECT, b.emit(Op.LTS, limit, end), limit, end)
    if not padded:
        zero = b.const(0)
        start = b.emit(Op.SELECT, b.emit(Op.LTS, start, zero), zero, start)
    return b.emit(Op.SUB, end, start)


def _avg_pool_backward(call: Call) -> Value:
    """The gradients, divided as forward, summed over the windows that see a position."""
    gradient = _view(call, 0)
    pool = Pool.of(call, call.tensor(1).shape, gradient.shape, 2, dilated=False)
    share = _divided(call, gradient, pool, call.flag(6), call.argument(7), "share")
    return _spread(call, share, pool)


def _spread(call: Call, share: Value, pool: Pool) -> Value:
    return pool.gradient(call, [call.emitter.stored(share)], [0], select=False)


POOLING: Mapping[str, Callable[[Call], Value | tuple[Value, ...]]] = {
    "aten.max_pool2d_with_indices.default": _max_pool,
    "aten.max_pool2d_with_indices_backward.default": _max_pool_backward,
    "aten.max_pool3d_with_indices.default": _max_pool,
    "aten.max_pool3d_with_indices_backward.default": _max_pool_backward,
    "aten.avg_pool2d.default": _avg_pool,
    "aten.avg_pool2d_backward.default": _avg_pool_backward,
    "aten.avg_pool3d.default": _avg_pool,
    "aten.avg_pool3d_backward.default": _avg_pool_backward,
}
