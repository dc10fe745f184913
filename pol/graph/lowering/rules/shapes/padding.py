"""Borders and order of positions: words move, as views where strides can say it and as maps otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from pol.arithmetic.registers import Register
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Formula
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.shapes.joins import overlaid
from pol.graph.lowering.values import Value, View, permute
from pol.graph.lowering.windows import Grid


def _pairs(call: Call, position: int, rank: int) -> list[tuple[int, int]]:
    """Before and after every dimension; torch counts from the last one."""
    given = call.integers(position)
    if len(given) % 2 or len(given) > 2 * rank:
        raise ProtocolError(f"{given} does not pad {rank} dimensions")
    pairs = list(zip(given[::2], given[1::2], strict=True))
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


@dataclass(frozen=True)
class Piece:
    """Outputs start .. start + count - 1 of a dimension read the positions base + sign * output."""

    start: int
    count: int
    base: int
    sign: int = 1


def _joined(call: Call, view: View, axis: int, size: int, pieces: Sequence[Piece], join: Formula, part: str) -> View:
    """A dimension put together from pieces; `join` is the formula of what they hold at an output."""
    grid = Grid()
    places = [grid.along(size if number == axis else extent) for number, extent in enumerate(view.shape)]
    own, reads = places[axis], []
    for piece in pieces:
        read = grid.read(view, [*places[:axis], own * piece.sign + piece.base, *places[axis + 1 :]], folds=False)
        bounds = grid.bound(own + -piece.start, piece.count, folds=False)
        reads.append(replace(read, bounds=(*read.bounds, *bounds)))

    result = call.emitter.map(grid.shape, view.dtype, reads, join, part)
    return call.emitter.view(call.emitter.reshaped(result, (*view.shape[:axis], size, *view.shape[axis + 1 :])))


def _sum(*words: Register) -> Register:
    return reduce(add, words)


def _mirrored(size: int, before: int, after: int) -> tuple[Piece, Piece, Piece]:
    """The pieces of a padded dimension that mirrors the inside without repeating the border."""
    if not 0 <= before < size or not 0 <= after < size:
        raise ProtocolError(f"a dimension of size {size} cannot be mirrored by {before} and {after}")
    return (
        Piece(before, size, -before),
        Piece(0, before, before, -1),
        Piece(before + size, after, 2 * (size - 1) + before, -1),
    )


@lowers(*(f"aten.reflection_pad{rank}d.default" for rank in (1, 2, 3)), defines="words mirrored at the borders")
def _reflection_pad(call: Call) -> Value:
    view = call.emitter.view(call.tensor(0))
    for axis, (before, after) in enumerate(_pairs(call, 1, len(view.shape))):
        if before or after:
            size = view.shape[axis]
            pieces = [piece for piece in _mirrored(size, before, after) if piece.count]
            view = _joined(call, view, axis, before + size + after, pieces, overlaid, f"dimension_{axis}")
    return view


@lowers(
    *(f"aten.reflection_pad{rank}d_backward.default" for rank in (1, 2, 3)),
    defines="per dimension FADD of the inside, of what was mirrored before it, of what was mirrored behind it",
)
def _reflection_pad_backward(call: Call) -> Value:
    view = call.emitter.view(call.tensor(0))
    for axis, (before, after) in enumerate(_pairs(call, 2, len(view.shape))):
        if before or after:
            size = view.shape[axis] - before - after
            _mirrored(size, before, after)
            pieces = [Piece(0, size, before)]
            pieces += [Piece(1, before, before, -1)] if before else []
            pieces += [Piece(size - 1 - after, after, 2 * (size - 1) + before, -1)] if after else []
            view = _joined(call, view, axis, size, pieces, _sum, f"dimension_{axis}")
    call.shaped(1, view.shape)
    return view


@lowers("aten.pixel_shuffle.default", defines="channels become positions: words in another order")
def _pixel_shuffle(call: Call) -> Value:
    value, factor = call.tensor(0), call.integer(1)
    *leading, channels, height, width = value.shape
    if factor < 1 or channels % factor**2:
        raise ProtocolError(f"{channels} channels cannot be shuffled by {factor}")
    cut_up = call.emitter.reshaped(value, (*leading, channels // factor**2, factor, factor, height, width))
    rank = len(leading) + 5
    order = [*range(rank - 4), rank - 2, rank - 4, rank - 1, rank - 3]
    return call.emitter.reshaped(permute(cut_up, order), call.output.shape)


@lowers("aten.pixel_unshuffle.default", defines="positions become channels: words in another order")
def _pixel_unshuffle(call: Call) -> Value:
    value, factor = call.tensor(0), call.integer(1)
    *leading, channels, height, width = value.shape
    if factor < 1 or height % factor or width % factor:
        raise ProtocolError(f"{height} x {width} positions cannot be shuffled by {factor}")
    cut_up = call.emitter.reshaped(value, (*leading, channels, height // factor, factor, width // factor, factor))
    rank = len(leading) + 5
    order = [*range(rank - 4), rank - 3, rank - 1, rank - 4, rank - 2]
    return call.emitter.reshaped(permute(cut_up, order), call.output.shape)
