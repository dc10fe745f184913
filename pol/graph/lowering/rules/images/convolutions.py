"""Convolutions: in one to three dimensions, folds with one fused multiply-add per term, beginning with +0.

Forward the fold runs over (channel, taps...); for the gradient of the input over (output channel, taps...), and for
that of the weight over (example, output positions...). Positions outside of a tensor are zeros, and are multiplied too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import add

from pol.arithmetic.registers import Float, fma
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import NodeRead
from pol.graph.lowering.folds import FLOAT_SUM, reduce
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import Value, View, unsqueeze, view_of
from pol.graph.lowering.windows import Cover, Grid, Window, moved, uncovered
from pol.graph.tensor_type import DType, TensorType


@dataclass(frozen=True)
class Geometry:
    """Windows from the larger tensor to the smaller one, and the groups of channels.

    Of a plain convolution the larger tensor is the input, of a transposed one the output.
    """

    windows: tuple[Window, ...]
    groups: int

    def correlated(self, call: Call, large: View, weight: View, part: str) -> Value:
        """The smaller tensor: for every output the sum over (channel, taps...)."""
        examples, channels = large.shape[:2]
        outputs, inner = weight.shape[:2]
        self._check(channels == inner * self.groups and outputs % self.groups == 0)
        grid = Grid()
        n, g = grid.along(examples), grid.along(self.groups)
        o = g * (outputs // self.groups) + grid.along(outputs // self.groups)
        at = [grid.along(window.outputs) for window in self.windows]
        c = grid.over(inner)
        taps = [grid.over(window.taps) for window in self.windows]
        seen = [window.seen(place, tap) for window, place, tap in zip(self.windows, at, taps, strict=True)]
        reads = [grid.read(large, [n, g * inner + c, *seen]), grid.read(weight, [o, c, *taps])]
        result = _folded(call, grid, reads, part)
        return call.emitter.reshaped(result, (examples, outputs, *(window.outputs for window in self.windows)))

    def spread(self, call: Call, small: View, weight: View, part: str) -> Value:
        """The larger tensor: for every position the sum over (channel of the smaller one, taps that see it...)."""
        examples, channels = small.shape[:2]
        outer, inner = weight.shape[:2]
        self._check(channels == outer and outer % self.groups == 0)
        if any(window.stride > 1 and window.dilation > 1 for window in self.windows):
            windows = [replace(window, stride=1, outputs=window.outputs * window.stride) for window in self.windows]
            spaced = _spaced(call, small, self.windows)
            return Geometry(tuple(windows), self.groups).spread(call, spaced, weight, part)
        grid = Grid()
        n, g, c = grid.along(examples), grid.along(self.groups), grid.along(inner)
        covers = [Cover.of(window) for window in self.windows]
        pairs = [(grid.along(cover.quotients), grid.along(cover.window.stride)) for cover in covers]
        o = g * (outer // self.groups) + grid.over(outer // self.groups)
        terms = [grid.over(cover.terms) for cover in covers]
        outputs = [cover.output(q, j) for cover, (q, _), j in zip(covers, pairs, terms, strict=True)]
        taps = [cover.tap(r, j) for cover, (_, r), j in zip(covers, pairs, terms, strict=True)]
        result = _folded(call, grid, [grid.read(small, [n, o, *outputs]), grid.read(weight, [o, c, *taps])], part)
        return uncovered(call.emitter, result, (examples, self.groups * inner), covers)

    def kernel(self, call: Call, large: View, small: View, part: str) -> Value:
        """The gradient of the weight: for every tap the sum over (example, positions of the smaller tensor...)."""
        outputs, channels = small.shape[1], large.shape[1]
        self._check(outputs % self.groups == 0 and channels % self.groups == 0 and small.shape[0] == large.shape[0])
        inner = channels // self.groups
        grid = Grid()
        g = grid.along(self.groups)
        o = g * (outputs // self.groups) + grid.along(outputs // self.groups)
        c = grid.along(inner)
        taps = [grid.along(window.taps) for window in self.windows]
        n = grid.over(large.shape[0])
        at = [grid.over(window.outputs) for window in self.windows]
        seen = [window.seen(place, tap) for window, place, tap in zip(self.windows, at, taps, strict=True)]
        result = _folded(call, grid, [grid.read(small, [n, o, *at]), grid.read(large, [n, g * inner + c, *seen])], part)
        return call.emitter.reshaped(result, (outputs, inner, *(window.taps for window in self.windows)))

    @staticmethod
    def _check(fits: bool) -> None:
        if not fits:
            raise ProtocolError("the channels of a convolution do not fit its groups")


def _folded(call: Call, grid: Grid, reads: Sequence[NodeRead], part: str) -> View:
    def add_product(total: Float, x: Float, w: Float) -> Float:
        return fma(x, w, total)

    return call.emitter.fold(TensorType(DType.F32, grid.shape), grid.terms, 0, reads, add_product, part)


def _spaced(call: Call, small: View, windows: Sequence[Window]) -> View:
    """The tensor with stride - 1 zeros behind every position."""
    grid = Grid()
    places = [grid.along(size) for size in small.shape[:2]]
    gaps = []
    for window in windows:
        places.append(grid.along(window.outputs))
        gaps.append(grid.along(window.stride))
    read = grid.read(small, places, folds=False)
    bounds = [bound for gap in gaps for bound in grid.bound(gap, 1, folds=False)]
    spaced = moved(call.emitter, replace(read, bounds=(*read.bounds, *bounds)), "spaced")
    return view_of(call.emitter.reshaped(spaced, (*small.shape[:2], *(w.outputs * w.stride for w in windows))))


def _geometry(call: Call, first: int, large: Sequence[int], small: Sequence[int], kernel: Sequence[int]) -> Geometry:
    """From the arguments stride, padding, dilation, transposed, output_padding, groups that begin at `first`."""
    rank = len(kernel)
    stride, padding, dilation = (_each(call, first + number, rank) for number in range(3))
    if len(large) != rank or len(small) != rank:
        raise ProtocolError("the operands of a convolution have different ranks")
    groups = call.integer(first + 5)
    if groups < 1:
        raise ProtocolError(f"{groups} groups of channels")
    windows = zip(large, kernel, stride, padding, dilation, small, strict=True)
    return Geometry(tuple(Window(*numbers) for numbers in windows), groups)


def _each(call: Call, position: int, rank: int) -> tuple[int, ...]:
    """One integer per dimension; torch repeats a single one."""
    given = call.integers(position)
    return given * rank if len(given) == 1 else given


@lowers(
    "aten.convolution.default",
    defines="1 to 3 dimensions, groups, transposed: acc = FFMA(x, w, acc) from +0 over (channel, taps); outside of the "
    "input x is +0; then FADD of the bias. Transposed: as the gradient of the input",
)
def _convolution(call: Call) -> Value:
    source, weight = call.floats(0), call.floats(1)
    shape, kernel = call.output.shape[2:], weight.shape[2:]
    has_bias = call.argument(2) is not None
    part = "product" if has_bias else ""
    if call.flag(6):
        result = _geometry(call, 3, shape, source.shape[2:], kernel).spread(call, source, weight, part)
    else:
        result = _geometry(call, 3, source.shape[2:], shape, kernel).correlated(call, source, weight, part)
    if not has_bias:
        return result
    bias = call.tensor(2)
    for _ in kernel:
        bias = unsqueeze(bias, -1)
    return elementwise(call, [result, bias], add)


@lowers(
    "aten.convolution_backward.default",
    defines="input: FFMA from +0 over (output channel, windows that see the position, taps ascending; what a stride "
    "leaves out counts as +0); weight: FFMA over (example, positions); bias: the sum",
)
def _backward(call: Call) -> tuple[Value, ...]:
    """Gradients of input, weight and bias, those of them that the mask asks for."""
    # y[o] = sum over taps t of x[i] * w[t] with i = o * stride - padding + t * dilation:
    # dx[i] sums g[o] * w[t] over the (o, t) that see i, dw[t] sums g[o] * x[i] over o, db sums g.
    gradient, source, weight = (call.floats(position) for position in range(3))
    mask = call.argument(10)
    if not isinstance(mask, tuple) or len(mask) != 3:
        raise ProtocolError(f"{mask!r} does not say which gradients are wanted")
    transposed = call.flag(7)
    large, small = (gradient, source) if transposed else (source, gradient)
    geometry = _geometry(call, 4, large.shape[2:], small.shape[2:], weight.shape[2:])
    results: list[Value] = []
    if mask[0]:
        way = geometry.correlated if transposed else geometry.spread
        results.append(way(call, gradient, weight, "input"))
    if mask[1]:
        results.append(geometry.kernel(call, large, small, "weight"))
    if mask[2]:
        axes = [axis for axis in range(len(gradient.shape)) if axis != 1]
        results.append(reduce(call.emitter, gradient, axes, FLOAT_SUM, "bias"))
    return tuple(results)
