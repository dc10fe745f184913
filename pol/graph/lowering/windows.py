"""Sliding windows: positions that are affine in the coordinates of a node, and which windows see a position.

Output `o` of a window over one dimension sees the inputs `o * stride - padding + tap * dilation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pol.arithmetic.registers import Register, Word
from pol.errors import ProtocolError
from pol.graph.lowering.emitter import Coordinate, Emitter, NodeRead, same
from pol.graph.lowering.values import Value, View, cut
from pol.graph.node import Affine, Bound


@dataclass(frozen=True)
class WindowPosition:
    """`base + sum of stride * coordinate`; coordinates are numbers given by a Grid."""

    base: int = 0
    strides: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: WindowPosition | int) -> WindowPosition:
        if isinstance(other, int):
            return WindowPosition(self.base + other, self.strides)
        return WindowPosition(self.base + other.base, self.strides + other.strides)

    def __mul__(self, factor: int) -> WindowPosition:
        return WindowPosition(self.base * factor, tuple((number, stride * factor) for number, stride in self.strides))


class Grid:
    """The coordinates of a node, made one after the other; what has one value only gets no dimension."""

    def __init__(self) -> None:
        self._sizes: list[tuple[int, bool]] = []

    def along(self, size: int) -> WindowPosition:
        """A coordinate of the output."""
        return self._coordinate(size, False)

    def over(self, size: int) -> WindowPosition:
        """A coordinate of the fold."""
        return self._coordinate(size, True)

    def _coordinate(self, size: int, folds: bool) -> WindowPosition:
        if size < 1:
            raise ProtocolError(f"a dimension of size {size}")
        if size == 1:
            return WindowPosition()
        self._sizes.append((size, folds))
        return WindowPosition(0, ((len(self._sizes) - 1, 1),))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the output."""
        return tuple(size for size, folds in self._sizes if not folds)

    @property
    def terms(self) -> tuple[int, ...]:
        """Of the fold; a fold has at least one dimension."""
        return tuple(size for size, folds in self._sizes if folds) or (1,)

    def read(self, view: View, positions: Sequence[WindowPosition], fill: int = 0, folds: bool = True) -> NodeRead:
        """The word at one position per dimension of a view; `fill` outside of it."""
        base, strides = view.base, [0] * len(self._sizes)
        bounds = []
        for position, size, stride in zip(positions, view.shape, view.strides, strict=True):
            base += stride * position.base
            for number, factor in position.strides:
                strides[number] += stride * factor
            bounds += self.bound(position, size, folds)
        shape = (*self.shape, *self.terms) if folds else self.shape
        moved = replace(view, shape=shape, base=base, strides=self._ordered(strides, folds))
        return NodeRead(moved, fill, tuple(bounds))

    def bound(self, position: WindowPosition, limit: int, folds: bool = True) -> list[Bound]:
        """The bound `0 <= position < limit`, if it can be broken."""
        strides = [0] * len(self._sizes)
        for number, factor in position.strides:
            strides[number] += factor
        reach = [factor * (size - 1) for factor, (size, _) in zip(strides, self._sizes, strict=True)]
        low = position.base + sum(far for far in reach if far < 0)
        high = position.base + sum(far for far in reach if far > 0)
        if low >= 0 and high < limit:
            return []
        return [Bound(Affine(position.base, (0, *self._ordered(strides, folds))), limit)]

    def coordinates(self) -> list[Coordinate]:
        """All of them as arguments of a formula, for `word`."""
        return [Coordinate(number) for number in range(len(self._sizes))]

    def word(self, beside: Register, coordinates: Sequence[Word], position: WindowPosition) -> Word:
        """A position as an i32, from the registers of `coordinates`; what a fold does not change comes first."""
        element = [number for number, (_, is_fold) in enumerate(self._sizes) if not is_fold]
        order = element + [number for number, (_, is_fold) in enumerate(self._sizes) if is_fold]
        result = beside.word(position.base)
        for number, stride in sorted(position.strides, key=lambda pair: order.index(pair[0])):
            coordinate = coordinates[order.index(number)]
            result += coordinate if stride == 1 else coordinate * stride
        return result

    def _ordered(self, strides: Sequence[int], folds: bool) -> tuple[int, ...]:
        """Strides of the coordinates of the output, then of the fold."""
        pairs = list(zip(strides, self._sizes, strict=True))
        element = [stride for stride, (_, is_fold) in pairs if not is_fold]
        fold = [stride for stride, (_, is_fold) in pairs if is_fold]
        return (*element, *(fold or [0])) if folds else tuple(element)


@dataclass(frozen=True)
class Window:
    """A window over one dimension of `size` positions that gives `outputs`; ProtocolError for impossible numbers."""

    size: int
    taps: int
    stride: int
    padding: int
    dilation: int
    outputs: int

    def __post_init__(self) -> None:
        if min(self.size, self.taps, self.stride, self.dilation, self.outputs) < 1 or self.padding < 0:
            raise ProtocolError(f"impossible numbers of a window: {self}")

    @property
    def extents(self) -> list[int]:
        """Per output, how many positions of the input it sees; for dilation 1."""
        starts = [output * self.stride - self.padding for output in range(self.outputs)]
        return [min(start + self.taps, self.size) - max(start, 0) for start in starts]

    @property
    def reach(self) -> int:
        """From the first to the last tap, both counted."""
        return (self.taps - 1) * self.dilation + 1

    def seen(self, output: WindowPosition, tap: WindowPosition) -> WindowPosition:
        """The input position that a tap of an output sees."""
        return output * self.stride + tap * self.dilation + -self.padding


@dataclass(frozen=True)
class Cover:
    """Which outputs see a position: position `y = q * stride + r - lead`, output `o = q + last - j`, tap `t`.

    Where stride is 1, a position is one coordinate and j counts taps. Else the remainder r is a coordinate of its own,
    so that everything is affine; the taps seen are `t = r + stride * j + first`, those outside of the window included.
    For every j the outputs descend and the taps ascend.
    """

    window: Window
    lead: int
    last: int
    terms: int

    @classmethod
    def of(cls, window: Window) -> Cover:
        """The cover with the fewest terms; a larger stride needs dilation 1 (take the reach as taps otherwise)."""
        if window.stride == 1:
            return cls(window, 0, window.padding, window.taps)
        if window.dilation != 1:
            raise AssertionError("windows with stride and dilation are not covered")
        aligned, led = (cls._led(window, lead) for lead in (0, window.padding % window.stride))
        return aligned if aligned.terms <= led.terms else led

    @classmethod
    def _led(cls, window: Window, lead: int) -> Cover:
        shift = window.padding - lead
        last = (window.stride - 1 + shift) // window.stride
        first = -((window.taps - 1 - shift) // window.stride)
        return cls(window, lead, last, last - first + 1)

    @property
    def quotients(self) -> int:
        """How many q there are."""
        return -(-(self.window.size + self.lead) // self.window.stride)

    def output(self, q: WindowPosition, j: WindowPosition) -> WindowPosition:
        """The output that sees it."""
        return q + j * -self.window.dilation + self.last

    def tap(self, r: WindowPosition, j: WindowPosition) -> WindowPosition:
        """Through which tap."""
        if self.window.stride == 1:
            return j
        return r + j * self.window.stride + (self.window.padding - self.lead - self.window.stride * self.last)

    def position(self, q: WindowPosition, r: WindowPosition) -> WindowPosition:
        """Of the input."""
        return q * self.window.stride + r + -self.lead


def uncovered(emitter: Emitter, value: Value, leading: Sequence[int], covers: Sequence[Cover]) -> Value:
    """From (leading..., q, r, q, r, ...) to (leading..., positions...)."""
    value = emitter.reshaped(value, (*leading, *(cover.quotients * cover.window.stride for cover in covers)))
    for number, cover in enumerate(covers):
        value = cut(value, len(leading) + number, cover.lead, cover.lead + cover.window.size)
    return value


def moved(emitter: Emitter, read: NodeRead, part: str) -> View:
    """A map of the words of a read."""
    view = read.view
    return emitter.map(view.shape, view.dtype, [read], same, part)
