"""Padding and rearrangement: operations that move words, as views where strides can say it and as maps otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.values import Value, View, permute
from pol.graph.lowering.windows import Grid


def _view(call: Call, value: Value) -> View:
    return value if isinstance(value, View) else call.emitter.stored(value)


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


def _joined(call: Call, view: View, axis: int, size: int, pieces: Sequence[Piece], op: Op, part: str) -> View:
    """A dimension put together from pieces; where several hold an output they are joined by `op`."""
    grid = Grid()
    places = [grid.along(size if number == axis else extent) for number, extent in enumerate(view.shape)]
    own, reads = places[axis], []
    for piece in pieces:
        read = grid.read(view, [*places[:axis], own * piece.sign + piece.base, *places[axis + 1 :]], folds=False)
        bounds = grid.bound(own + -piece.start, piece.count, folds=False)
        reads.append(replace(read, bounds=(*read.bounds, *bounds)))

    def formula(b: Builder, regs: list[int]) -> int:
        result = regs[0]
        for other in regs[1:]:
            result = b.emit(op, result, other)
        return result if len(regs) > 1 else b.emit(Op.MOV, result)

    result = call.emitter.map(grid.shape, view.dtype, reads, formula, part)
    return _view(call, call.emitter.reshaped(result, (*view.shape[:axis], size, *view.shape[axis + 1 :])))


def _mirrored(size: int, before: int, after: int) -> tuple[Piece, Piece, Piece]:
    """The pieces of a padded dimension that mirrors the inside without repeating the border."""
    if not 0 <= before < size or not 0 <= after < size:
        raise ProtocolError(f"a dimension of size {size} cannot be mirrored by {before} and {after}")
    return (
        Piece(before, size, -before),
        Piece(0, before, before, -1),
        Piece(before + size, after, 2 * (size - 1) + before, -1),
    )


def _reflection_pad(call: Call) -> Value:
    """Words mirrored at the borders."""
    view = _view(call, call.tensor(0))
    for axis, (before, after) in enumerate(_pairs(call, 1, len(view.shape))):
        if before or after:
            size = view.shape[axis]
            pieces = [piece for piece in _mirrored(size, before, after) if piece.count]
            view = _joined(call, view, axis, before + size + after, pieces, Op.OR, f"dimension_{axis}")
    return view


def _reflection_pad_backward(call: Call) -> Value:
    """Per dimension, first to last: the inside, then what was mirrored before it and behind it, added with FADD."""
    view = _view(call, call.tensor(0))
    for axis, (before, after) in enumerate(_pairs(call, 2, len(view.shape))):
        if before or after:
            size = view.shape[axis] - before - after
            _mirrored(size, before, after)
            pieces = [Piece(0, size, before)]
            pieces += [Piece(1, before, before, -1)] if before else []
            pieces += [Piece(size - 1 - after, after, 2 * (size - 1) + before, -1)] if after else []
            view = _joined(call, view, axis, size, pieces, Op.FADD, f"dimension_{axis}")
    return view


def _pixel_shuffle(call: Call) -> Value:
    """Channels become positions: a view of other order."""
    value, factor = call.tensor(0), call.integer(1)
    *leading, channels, height, width = value.shape
    if factor < 1 or channels % factor**2:
        raise ProtocolError(f"{channels} channels cannot be shuffled by {factor}")
    cut_up = call.emitter.reshaped(value, (*leading, channels // factor**2, factor, factor, height, width))
    rank = len(leading) + 5
    order = [*range(rank - 4), rank - 2, rank - 4, rank - 1, rank - 3]
    return call.emitter.reshaped(permute(cut_up, order), call.output.shape)


def _pixel_unshuffle(call: Call) -> Value:
    """Positions become channels."""
    value, factor = call.tensor(0), call.integer(1)
    *leading, channels, height, width = value.shape
    if factor < 1 or height % factor or width % factor:
        raise ProtocolError(f"{height} x {width} positions cannot be shuffled by {factor}")
    cut_up = call.emitter.reshaped(value, (*leading, channels, height // factor, factor, width // factor, factor))
    rank = len(leading) + 5
    order = [*range(rank - 4), rank - 3, rank - 1, rank - 4, rank - 2]
    return call.emitter.reshaped(permute(cut_up, order), call.output.shape)


BORDERS: Mapping[str, Callable[[Call], Value]] = {
    **{f"aten.reflection_pad{rank}d.default": _reflection_pad for rank in (1, 2)},
    **{f"aten.reflection_pad{rank}d_backward.default": _reflection_pad_backward for rank in (1, 2)},
    "aten.pixel_shuffle.default": _pixel_shuffle,
    "aten.pixel_unshuffle.default": _pixel_unshuffle,
}
