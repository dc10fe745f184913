"""Other sizes at any ratio: nearest and linear interpolation.

Which positions belong together is computed inside the program, as small tables of integers and weights, with the
formulas of torch in binary32. Interpolation goes dimension by dimension: forward from the last one, backward from the
first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, Read
from pol.graph.lowering.values import Value, View, expand, select, unsqueeze
from pol.graph.lowering.windows import Grid
from pol.graph.tensor_type import DType, TensorType


def as_view(call: Call, value: Value) -> View:
    """The value as words in memory; float32 only."""
    if value.dtype is not DType.F32:
        raise call.unsupported("only float32 is defined")
    return value if isinstance(value, View) else call.emitter.stored(value)


def seen(value: Value) -> View:
    """What came of a view by cutting and expanding, which is one."""
    if not isinstance(value, View):
        raise AssertionError("a part of a view is a view")
    return value


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

    def real(self, b: Builder, output: int) -> int:
        """Register of the position in binary32."""
        place = b.emit(Op.I2F, output)
        if self.corners or not self.offset:
            return b.emit(Op.FMUL, place, b.f32(self.scale))
        return b.emit(Op.FMUL, b.emit(Op.FADD, place, b.f32(0.5)), b.f32(self.scale))

    def nearest(self, b: Builder, output: int) -> int:
        """Register of the position that an output repeats."""
        return self._inside(b, b.emit(Op.F2I, self.real(b, output)))

    def between(self, b: Builder, output: int) -> tuple[int, int]:
        """Registers of the position below, and of the weight of the next one."""
        real = self.real(b, output)
        if not self.corners:
            real = b.emit(Op.FMAX, b.emit(Op.FSUB, real, b.f32(0.5)), b.f32(0.0))
        below = self._inside(b, b.emit(Op.F2I, real))
        rest = b.emit(Op.FSUB, real, b.emit(Op.I2F, below))
        return below, b.emit(Op.FMIN, rest, b.f32(1.0))

    def above(self, b: Builder, output: int) -> int:
        """Register of the position above, the last one at the end."""
        return self._inside(b, b.emit(Op.ADD, self.between(b, output)[0], b.const(1)))

    def _inside(self, b: Builder, place: int) -> int:
        last = b.const(self.size - 1)
        return b.emit(Op.SELECT, b.emit(Op.LTS, last, place), last, place)


def _ratios(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int, kind: str) -> list[Ratio]:
    """From the optional scale factors that begin at argument `first`."""
    ratios = []
    for number, (size, output) in enumerate(zip(sizes, outputs, strict=True)):
        given = call.argument(first + number)
        scale = 1.0 / float(given) if isinstance(given, int | float) and given > 0 else size / output
        corners = kind == "corners"
        if corners:
            scale = (size - 1) / (output - 1) if output > 1 else 0.0
        ratios.append(Ratio(size, output, scale, 0.0 if kind == "nearest" else 0.5, corners))
    return ratios


def _places(call: Call, ratio: Ratio, place: Callable[[Builder, int], int], dtype: DType, part: str) -> View:
    return call.emitter.map((ratio.outputs,), dtype, [Coordinate(0)], lambda b, regs: place(b, regs[0]), part)


def _along(table: View, shape: Sequence[int], axis: int) -> View:
    """A table over one dimension of a shape."""
    value: Value = table
    for _ in range(len(shape) - axis - 1):
        value = unsqueeze(value, len(value.shape))
    return seen(expand(value, shape))


def _gathered(source: View, shape: Sequence[int], axis: int, index: int) -> Read:
    """The source with one dimension addressed by an earlier argument."""
    rest = seen(expand(unsqueeze(select(source, axis, 0), axis), shape))
    return Read(rest, gather=(index, source.strides[axis], source.shape[axis]))


def _nearest(call: Call) -> Value:
    """Words moved; nothing is computed but addresses."""
    source, ratios = as_view(call, call.tensor(0)), _given(call, call.tensor(0).shape, call.output.shape, 2)
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
        source = call.emitter.map(shape, DType.F32, arguments, lambda b, regs: b.emit(Op.MOV, regs[1]), part)
    return source


def _given(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int) -> list[Ratio]:
    rank = len(sizes) - 2
    exact = "exact" in call.node.operation
    if len(sizes) != len(outputs) or rank < 1:
        raise ProtocolError("the tensors have different ranks")
    return _ratios(call, sizes[-rank:], outputs[-rank:], first, "exact" if exact else "nearest")


def _nearest_backward(call: Call) -> Value:
    """Sums over the outputs that repeat a position, ascending."""
    gradient = as_view(call, call.tensor(0))
    ratios = _given(call, call.output.shape, gradient.shape, 3)
    first = len(gradient.shape) - len(ratios)
    if all(ratio.factor for ratio in ratios):
        grid = Grid()
        places = [grid.along(size) for size in gradient.shape[:first]]
        kept = [grid.along(ratio.size) * ratio.factor for ratio in ratios]
        places += [place + grid.over(ratio.factor) for place, ratio in zip(kept, ratios, strict=True)]
        total = call.emitter.fold(
            TensorType(DType.F32, grid.shape),
            grid.terms,
            0,
            [grid.read(gradient, places)],
            lambda b, accumulator, regs: b.emit(Op.FADD, accumulator, *regs),
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
        seen(expand(table, over)),
        Coordinate(axis),
        seen(expand(unsqueeze(terms, axis), over)),
    ]
    if weight is not None:
        arguments.append(seen(expand(weight, over)))

    def formula(b: Builder, accumulator: int, regs: list[int]) -> int:
        own = b.emit(Op.EQ, regs[0], regs[1])
        product = (Op.FFMA, regs[3], regs[2], accumulator) if weight is not None else (Op.FADD, accumulator, regs[2])
        return b.emit(Op.SELECT, own, b.emit(*product), accumulator)

    return call.emitter.fold(TensorType(DType.F32, shape), (ratio.outputs,), 0, arguments, formula, part)


def _linear_ratios(call: Call, sizes: Sequence[int], outputs: Sequence[int], first: int) -> list[Ratio]:
    rank = len(sizes) - 2
    corners = call.flag(first)
    return _ratios(call, sizes[-rank:], outputs[-rank:], first + 1, "corners" if corners else "exact")


def _tables(call: Call, ratio: Ratio, number: int) -> tuple[View, View, View, View]:
    """Positions below and above, and their weights."""

    def below(b: Builder, output: int) -> int:
        return b.emit(Op.MOV, ratio.between(b, output)[0])

    def below_weight(b: Builder, output: int) -> int:
        return b.emit(Op.FSUB, b.f32(1.0), ratio.between(b, output)[1])

    return (
        _places(call, ratio, below, DType.I32, f"below_{number}"),
        _places(call, ratio, ratio.above, DType.I32, f"above_{number}"),
        _places(call, ratio, below_weight, DType.F32, f"below_weight_{number}"),
        _places(call, ratio, lambda b, output: ratio.between(b, output)[1], DType.F32, f"above_weight_{number}"),
    )


def _linear(call: Call) -> Value:
    """FADD(FMUL(weight below, x below), FMUL(weight above, x above)), the last dimension first."""
    source = as_view(call, call.tensor(0))
    for number, ratio in reversed(list(enumerate(_linear_ratios(call, source.shape, call.output.shape, 2)))):
        axis = 2 + number
        shape = (*source.shape[:axis], ratio.outputs, *source.shape[axis + 1 :])
        below, above, *weights = (_along(table, shape, axis) for table in _tables(call, ratio, number))
        reads = [_gathered(source, shape, axis, 0), _gathered(source, shape, axis, 1)]
        source = call.emitter.map(
            shape,
            DType.F32,
            [below, above, *weights, *reads],
            lambda b, regs: b.emit(Op.FADD, b.emit(Op.FMUL, regs[2], regs[4]), b.emit(Op.FMUL, regs[3], regs[5])),
            f"pass_{number}" if number else "",
        )
    return source


def _linear_backward(call: Call) -> Value:
    """Per dimension the sums of weight * gradient over the outputs above, and over those below, added."""
    gradient = as_view(call, call.tensor(0))
    for number, ratio in enumerate(_linear_ratios(call, call.output.shape, gradient.shape, 3)):
        below, above, lower, upper = _tables(call, ratio, number)
        sums = [
            _collected(call, gradient, 2 + number, ratio, table, weight, f"{part}_{number}")
            for table, weight, part in ((below, lower, "from_below"), (above, upper, "from_above"))
        ]
        part = f"pass_{number}" if number + 3 < len(gradient.shape) else ""
        gradient = call.emitter.map(sums[0].shape, DType.F32, sums, lambda b, regs: b.emit(Op.FADD, *regs), part)
    return gradient


_LINEAR = ("linear1d", "bilinear2d", "trilinear3d")
RESAMPLING: Mapping[str, Callable[[Call], Value]] = {
    **{f"aten.upsample_nearest{rank}d.default": _nearest for rank in (1, 2, 3)},
    **{f"aten.upsample_nearest{rank}d_backward.default": _nearest_backward for rank in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{rank}d.default": _nearest for rank in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{rank}d_backward.default": _nearest_backward for rank in (1, 2, 3)},
    **{f"aten.upsample_{kind}.default": _linear for kind in _LINEAR},
    **{f"aten.upsample_{kind}_backward.default": _linear_backward for kind in _LINEAR},
}
