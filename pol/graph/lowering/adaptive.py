"""Adaptive average pooling: the mean of parts of a tensor whose borders are computed inside the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Read
from pol.graph.lowering.resampling import as_view, seen
from pol.graph.lowering.values import Value, View, expand, select, unsqueeze
from pol.graph.tensor_type import DType, TensorType

NOWHERE = 0xFFFFFFFF
EXACT = 2**24
"""Below this, every integer is a binary32 number, and rounded quotients have the right integral part."""


@dataclass(frozen=True)
class Parts:
    """`coarse` overlapping parts of `fine` positions.

    Part i goes from floor(i * fine / coarse) to ceil((i + 1) * fine / coarse), which is not in it any more.
    With the sizes exchanged it says which parts hold a position.
    """

    fine: int
    coarse: int

    def start(self, b: Builder, part: int) -> int:
        """Register of the first position of a part."""
        return self._quotient(b, b.emit(Op.MUL, part, b.const(self.fine)))

    def end(self, b: Builder, part: int) -> int:
        """Register of the position behind a part."""
        upper = b.emit(Op.MUL, b.emit(Op.ADD, part, b.const(1)), b.const(self.fine))
        return self._quotient(b, b.emit(Op.ADD, upper, b.const(self.coarse - 1)))

    def _quotient(self, b: Builder, dividend: int) -> int:
        return b.emit(Op.F2I, b.emit(Op.FDIV, b.emit(Op.I2F, dividend), b.f32(float(self.coarse))))

    @property
    def longest(self) -> int:
        """The most positions of one part."""
        fine, coarse = self.fine, self.coarse
        return max(-(-(i + 1) * fine // coarse) - i * fine // coarse for i in range(coarse))


def _sums(call: Call, source: View, parts: Sequence[Parts], part: str) -> View:
    """Over every part, in row-major order, from +0."""
    if any((parts_.coarse + 1) * parts_.fine >= EXACT for parts_ in parts):
        raise call.unsupported("the sizes are too large")
    rank = len(parts)
    leading, coarse = source.shape[:-rank], tuple(parts_.coarse for parts_ in parts)
    taps = tuple(parts_.longest for parts_ in parts)

    def position(b: Builder, regs: list[int]) -> int:
        flat, inside = b.const(0), b.const(1)
        for number, parts_ in enumerate(parts):
            place = b.emit(Op.ADD, parts_.start(b, regs[number]), regs[rank + number])
            inside = b.emit(Op.AND, inside, b.emit(Op.LTS, place, parts_.end(b, regs[number])))
            flat = b.emit(Op.ADD, b.emit(Op.MUL, flat, b.const(parts_.fine)), place)
        return b.emit(Op.SELECT, inside, flat, b.const(NOWHERE))

    coordinates = [Coordinate(number) for number in range(2 * rank)]
    table = call.emitter.map((*coarse, *taps), DType.I32, coordinates, position, f"{part}.positions")
    shape = (*leading, *coarse, *taps)
    flat = seen(call.emitter.reshaped(source, (*leading, -1)))
    first: Value = select(flat, -1, 0)
    for _ in range(2 * rank):
        first = unsqueeze(first, len(leading))
    read = Read(seen(expand(first, shape)), gather=(0, flat.strides[-1], flat.shape[-1]))
    return call.emitter.fold(
        TensorType(DType.F32, (*leading, *coarse)),
        taps,
        0,
        [seen(expand(table, shape)), read],
        lambda b, accumulator, regs: b.emit(Op.FADD, accumulator, regs[1]),
        part,
    )


def _means(call: Call, sums: View, parts: Sequence[Parts], part: str) -> View:
    """Divided by how many positions a part has."""
    rank = len(parts)

    def formula(b: Builder, regs: list[int]) -> int:
        count = b.const(1)
        for parts_, place in zip(parts, regs[1:], strict=True):
            count = b.emit(Op.MUL, count, b.emit(Op.SUB, parts_.end(b, place), parts_.start(b, place)))
        return b.emit(Op.FDIV, regs[0], b.emit(Op.I2F, count))

    coordinates = [Coordinate(len(sums.shape) - rank + number) for number in range(rank)]
    return call.emitter.map(sums.shape, DType.F32, [sums, *coordinates], formula, part)


def _pooled_rank(call: Call) -> int:
    return int(call.node.operation.partition("pool")[2][0])


def _adaptive(call: Call) -> Value:
    """The mean of each part."""
    source, rank = as_view(call, call.tensor(0)), _pooled_rank(call)
    parts = [Parts(*sizes) for sizes in zip(source.shape[-rank:], call.output.shape[-rank:], strict=True)]
    return _means(call, _sums(call, source, parts, "sum"), parts, "")


def _adaptive_backward(call: Call) -> Value:
    """The gradients divided as forward, summed over the parts that hold a position."""
    gradient, rank = as_view(call, call.tensor(0)), _pooled_rank(call)
    sizes = list(zip(call.output.shape[-rank:], gradient.shape[-rank:], strict=True))
    share = _means(call, gradient, [Parts(*pair) for pair in sizes], "share")
    return _sums(call, share, [Parts(coarse, fine) for fine, coarse in sizes], "")


ADAPTIVE: Mapping[str, Callable[[Call], Value]] = {
    "aten._adaptive_avg_pool2d.default": _adaptive,
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_backward,
    "aten._adaptive_avg_pool3d.default": _adaptive,
    "aten._adaptive_avg_pool3d_backward.default": _adaptive_backward,
}
