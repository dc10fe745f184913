"""Interpolation: nearest and linear, to other sizes at any ratio.

Which positions belong together is computed inside the program, as small tables of integers and weights, with the
formulas of torch in binary32. Interpolation goes dimension by dimension: forward from the last one, backward from the
first one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pol.arithmetic.registers import Float, Register, Word, fma, maximum, minimum, moved, select, to_float, to_word
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import Value, View, at_index, expand, unsqueeze, view_of
from pol.graph.lowering.windows import Grid
from pol.graph.tensor_type import DType, TensorType


@dataclass(frozen=True)
class Ratio:
    """How one dimension of `size` positions becomes `outputs`; `scale` is what one output advances."""

    size: int
    outputs: int
    scale: float
    offset: float
    corners: bool = False

    @property
    def factor(self) -> int:
        """How often every position stands in the output, if nothing else happens; else 0."""
        whole = self.outputs % self.size == 0 and self.scale * self.outputs == self.size
        return self.outputs // self.size if whole else 0

    def real(self, output: Word) -> Float:
        """The position in binary32."""
        place = to_float(output)
        if self.corners or not self.offset:
            return place * self.scale
        return (place + 0.5) * self.scale

    def nearest(self, output: Word) -> Word:
        """The position that an output repeats."""
        return self._inside(to_word(self.real(output)))

    def between(self, output: Word) -> tuple[Word, Float]:
        """The position below, and the weight of the next one."""
        real = self.real(output)
        if not self.corners:
            real = maximum(real - 0.5, 0.0)
        below = self._inside(to_word(real))
        rest = real - to_float(below)
        return below, minimum(rest, 1.0)

    def above(self, output: Word) -> Word:
        """The position above, the last one at the end."""
        return self._inside(self.between(output)[0] + 1)

    def _inside(self, place: Word) -> Word:
        last = place.word(self.size - 1)
        return select(last < place, last, place)


def _ratios(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int, kind: str) -> list[Ratio]:
    """From the optional scale factors that begin at argument `first`."""
    is_backward, ratios = "backward" in call.node.operation, list[Ratio]()
    if call.integers(1) != tuple(outputs) or (is_backward and call.integers(2)[2:] != tuple(sizes)):
        raise ProtocolError(f"{call.node.operation}: the sizes aren't those of the tensors")
    for number, (size, output) in enumerate(zip(sizes, outputs, strict=True)):
        given = call.argument(first + number)
        scale = 1.0 / float(given) if isinstance(given, int | float) and given > 0 else size / output
        corners = kind == "corners"
        if corners:
            scale = (size - 1) / (output - 1) if output > 1 else 0.0
        ratios.append(Ratio(size, output, scale, 0.0 if kind == "nearest" else 0.5, corners))
    return ratios


def _places(call: Call, ratio: Ratio, place: Callable[[Word], Register], dtype: DType, part: str) -> View:
    return call.emitter.map((ratio.outputs,), dtype, [Coordinate(0)], place, part)


def _along(table: View, shape: Sequence[int], axis: int) -> View:
    """A table over one dimension of a shape."""
    value: Value = table
    for _ in range(len(shape) - axis - 1):
        value = unsqueeze(value, len(value.shape))
    return view_of(expand(value, shape))


def _gathered(source: View, shape: Sequence[int], axis: int, index: int) -> NodeRead:
    """The source with one dimension addressed by an earlier argument."""
    rest = view_of(expand(unsqueeze(at_index(source, axis, 0), axis), shape))
    return NodeRead(rest, gather=(index, source.strides[axis], source.shape[axis]))


@lowers(
    *(f"aten.upsample_nearest{rank}d.default" for rank in (1, 2, 3)),
    defines="position F2I(FMUL(i, scale)), the last one at most; scale in binary64, rounded",
)
@lowers(
    *(f"aten._upsample_nearest_exact{rank}d.default" for rank in (1, 2, 3)),
    defines="position F2I(FMUL(FADD(i, 0.5), scale)), the last one at most; scale in binary64, rounded",
)
def _nearest(call: Call) -> Value:
    """Words moved; nothing is computed but addresses."""
    source, ratios = call.floats(0), _given(call, call.tensor(0).shape, call.output.shape, 2)
    first = len(source.shape) - len(ratios)
    if all(ratio.factor for ratio in ratios):
        pairs = [size for ratio in ratios for size in (ratio.size, ratio.factor)]
        value: Value = source
        for number in range(len(ratios)):
            value = unsqueeze(value, first + 2 * number + 1)
        return call.emitter.reshaped(expand(value, (*source.shape[:first], *pairs)), call.output.shape)
    for number, ratio in reversed(list(enumerate(ratios))):
        axis = first + number
        shape = (*source.shape[:axis], ratio.outputs, *source.shape[axis + 1 :])
        table = _places(call, ratio, ratio.nearest, DType.I32, f"positions_{number}")
        arguments: list[Argument] = [_along(table, shape, axis), _gathered(source, shape, axis, 0)]
        part = f"pass_{number}" if number else ""
        source = call.emitter.map(shape, DType.F32, arguments, lambda _, word: word, part)
    return source


def _given(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int) -> list[Ratio]:
    rank = len(sizes) - 2
    exact = "exact" in call.node.operation
    if len(sizes) != len(outputs) or rank < 1:
        raise ProtocolError("the tensors have different ranks")
    return _ratios(call, sizes[-rank:], outputs[-rank:], first, "exact" if exact else "nearest")


@lowers(
    *(f"aten.upsample_nearest{rank}d_backward.default" for rank in (1, 2, 3)),
    *(f"aten._upsample_nearest_exact{rank}d_backward.default" for rank in (1, 2, 3)),
    defines="FADD from +0 over the outputs that repeat the position",
)
def _nearest_backward(call: Call) -> Value:
    # y[o] = x[place[o]]: a position gets g[o] of every output that repeats it.
    gradient = call.floats(0)
    ratios = _given(call, call.output.shape, gradient.shape, 3)
    first = len(gradient.shape) - len(ratios)
    if all(ratio.factor for ratio in ratios):
        grid = Grid()
        places = [grid.along(size) for size in gradient.shape[:first]]
        kept = [grid.along(ratio.size) * ratio.factor for ratio in ratios]
        places += [place + grid.over(ratio.factor) for place, ratio in zip(kept, ratios, strict=True)]
        total = call.emitter.fold(
            TensorType(DType.F32, grid.shape), grid.terms, 0, [grid.read(gradient, places)], operator.add
        )
        return call.emitter.reshaped(total, call.output.shape)
    for number, ratio in enumerate(ratios):
        table = _places(call, ratio, ratio.nearest, DType.I32, f"positions_{number}")
        part = f"pass_{number}" if number + 1 < len(ratios) else ""
        gradient = _collected(call, gradient, first + number, ratio, table, None, part)
    return gradient


def _collected(
    call: Call, gradient: View, axis: int, ratio: Ratio, table: View, weight: View | None, part: str
) -> View:
    """Per position the sum of the gradients, times their weights, of the outputs whose table entry it is."""
    shape = (*gradient.shape[:axis], ratio.size, *gradient.shape[axis + 1 :])
    over = (*shape, ratio.outputs)
    order = (*gradient.shape[:axis], *gradient.shape[axis + 1 :], gradient.shape[axis])
    strides = (*gradient.strides[:axis], *gradient.strides[axis + 1 :], gradient.strides[axis])
    terms = View(gradient.source, gradient.index, gradient.type, order, gradient.base, strides, gradient.step_stride)
    arguments: list[Argument] = [
        view_of(expand(table, over)),
        Coordinate(axis),
        view_of(expand(unsqueeze(terms, axis), over)),
    ]
    if weight is not None:
        arguments.append(view_of(expand(weight, over)))

    def add(total: Float, entry: Word, position: Word, g: Float, weight: Float | None = None) -> Float:
        is_own = entry == position
        return select(is_own, total + g if weight is None else fma(weight, g, total), total)

    return call.emitter.fold(TensorType(DType.F32, shape), (ratio.outputs,), 0, arguments, add, part)


def _linear_ratios(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int) -> list[Ratio]:
    rank = len(sizes) - 2
    corners = call.flag(first)
    return _ratios(call, sizes[-rank:], outputs[-rank:], first + 1, "corners" if corners else "exact")


def _tables(call: Call, ratio: Ratio, number: int) -> tuple[View, View, View, View]:
    """Positions below and above, and their weights."""

    def below_weight(output: Word) -> Float:
        one = output.real(1.0)
        return one - ratio.between(output)[1]

    return (
        _places(call, ratio, lambda output: moved(ratio.between(output)[0]), DType.I32, f"below_{number}"),
        _places(call, ratio, ratio.above, DType.I32, f"above_{number}"),
        _places(call, ratio, below_weight, DType.F32, f"below_weight_{number}"),
        _places(call, ratio, lambda output: ratio.between(output)[1], DType.F32, f"above_weight_{number}"),
    )


_LINEAR = ("linear1d", "bilinear2d", "trilinear3d")


@lowers(
    *(f"aten.upsample_{kind}.default" for kind in _LINEAR),
    defines="per dimension, the last one first: FADD(FMUL(1 - w, below), FMUL(w, above)), w = position - F2I(position)",
)
def _linear(call: Call) -> Value:
    def interpolated(
        _below: Word, _above: Word, weight_below: Float, weight_above: Float, x_below: Float, x_above: Float
    ) -> Float:
        return weight_below * x_below + weight_above * x_above

    source = call.floats(0)
    for number, ratio in reversed(list(enumerate(_linear_ratios(call, source.shape, call.output.shape, 2)))):
        axis = 2 + number
        shape = (*source.shape[:axis], ratio.outputs, *source.shape[axis + 1 :])
        below, above, *weights = (_along(table, shape, axis) for table in _tables(call, ratio, number))
        reads = [_gathered(source, shape, axis, 0), _gathered(source, shape, axis, 1)]
        source = call.emitter.map(
            shape, DType.F32, [below, above, *weights, *reads], interpolated, f"pass_{number}" if number else ""
        )
    return source


@lowers(
    *(f"aten.upsample_{kind}_backward.default" for kind in _LINEAR),
    defines="per dimension, the first one first: sums with FFMA of the gradients from below and from above, FADD",
)
def _linear_backward(call: Call) -> Value:
    # y[o] = (1 - w[o]) * x[below[o]] + w[o] * x[above[o]]:
    # a position gets (1 - w) * g of the outputs above it and w * g of those below it.
    gradient = call.floats(0)
    for number, ratio in enumerate(_linear_ratios(call, call.output.shape, gradient.shape, 3)):
        below, above, lower, upper = _tables(call, ratio, number)
        sums = [
            _collected(call, gradient, 2 + number, ratio, table, weight, f"{part}_{number}")
            for table, weight, part in ((below, lower, "from_below"), (above, upper, "from_above"))
        ]
        part = f"pass_{number}" if number + 3 < len(gradient.shape) else ""
        gradient = call.emitter.map(sums[0].shape, DType.F32, sums, operator.add, part)
    return gradient
