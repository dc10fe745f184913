"""Adaptive pooling: the mean of parts of a tensor whose borders are computed inside the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.arithmetic.registers import Float, Word, select, to_float, to_word
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, NodeRead
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import Value, View, at_index, expand, unsqueeze, view_of
from pol.graph.tensor_type import DType, TensorType

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

    def start(self, part: Word) -> Word:
        """The first position of a part."""
        return self._quotient(part * self.fine)

    def end(self, part: Word) -> Word:
        """The position behind a part."""
        return self._quotient((part + 1) * self.fine + (self.coarse - 1))

    def _quotient(self, dividend: Word) -> Word:
        return to_word(to_float(dividend) / float(self.coarse))

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

    def position(*coordinates: Word) -> Word:
        flat, inside = coordinates[0].word(0), coordinates[0].word(1)
        for parts_, number, tap in zip(parts, coordinates[:rank], coordinates[rank:], strict=True):
            place = parts_.start(number) + tap
            inside &= place < parts_.end(number)
            flat = flat * parts_.fine + place
        return select(inside, flat, -1)

    coordinates = [Coordinate(number) for number in range(2 * rank)]
    table = call.emitter.map((*coarse, *taps), DType.I32, coordinates, position, f"{part}.positions")
    shape = (*leading, *coarse, *taps)
    flat = view_of(call.emitter.reshaped(source, (*leading, -1)))
    first: Value = at_index(flat, -1, 0)
    for _ in range(2 * rank):
        first = unsqueeze(first, len(leading))
    read = NodeRead(view_of(expand(first, shape)), gather=(0, flat.strides[-1], flat.shape[-1]))
    return call.emitter.fold(
        TensorType(DType.F32, (*leading, *coarse)),
        taps,
        0,
        [view_of(expand(table, shape)), read],
        lambda total, _, x: total + x,
        part,
    )


def _means(call: Call, sums: View, parts: Sequence[Parts], part: str) -> View:
    """Divided by how many positions a part has."""
    rank = len(parts)

    def formula(total: Float, *places: Word) -> Float:
        count = total.word(1)
        for parts_, number in zip(parts, places, strict=True):
            count *= parts_.end(number) - parts_.start(number)
        return total / to_float(count)

    coordinates = [Coordinate(len(sums.shape) - rank + number) for number in range(rank)]
    return call.emitter.map(sums.shape, DType.F32, [sums, *coordinates], formula, part)


def _pooled_rank(call: Call) -> int:
    return int(call.node.operation.partition("pool")[2][0])


@lowers(
    *(f"aten._adaptive_avg_pool{rank}d.default" for rank in (2, 3)),
    defines="parts floor(i * n / m) .. ceil((i + 1) * n / m): FADD from +0, FDIV by the count",
)
def _adaptive(call: Call) -> Value:
    source, rank = call.floats(0), _pooled_rank(call)
    parts = [Parts(*sizes) for sizes in zip(source.shape[-rank:], call.integers(1), strict=True)]
    return _means(call, _sums(call, source, parts, "sum"), parts, "")


@lowers(
    *(f"aten._adaptive_avg_pool{rank}d_backward.default" for rank in (2, 3)),
    defines="the gradients divided, FADD from +0 over the parts that hold the position",
)
def _adaptive_backward(call: Call) -> Value:
    # y[o] = sum of x[i] over part o / count[o]: a position gets g[o] / count[o] of every part that holds it.
    gradient, rank = call.floats(0), _pooled_rank(call)
    call.shaped(1, (*gradient.shape[:-rank], *call.output.shape[-rank:]))
    sizes = list(zip(call.output.shape[-rank:], gradient.shape[-rank:], strict=True))
    share = _means(call, gradient, [Parts(*pair) for pair in sizes], "share")
    return _sums(call, share, [Parts(coarse, fine) for fine, coarse in sizes], "")
