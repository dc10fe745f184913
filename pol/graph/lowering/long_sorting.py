"""Merging of sorted rows, for those that are too long to count ranks: every place of the result finds its word itself.

Of the first k words of two merged runs i come from the first run. That is at least t if its word t - 1 isn't preceded
by word k - t of the second run; so i is found bit by bit, from the highest down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pol.arithmetic.registers import Word, below, select
from pol.graph.lowering.emitter import Coordinate, Emitter, NodeRead
from pol.graph.lowering.values import View
from pol.graph.tensor_type import DType

Precedes = Callable[[Any, Any], Word]
"""1 where the first word comes before the second one."""


def merged(emitter: Emitter, values: View, places: View, precedes: Precedes, part: str) -> tuple[View, View]:
    """Stored runs (..., runs, length) and the places of their words, merged in pairs to (..., runs / 2, 2 * length).

    The length is a power of two, and the number of runs is even. Words of the first run come before equal ones.
    """
    *lead, runs, length = values.shape
    shape = (*lead, runs // 2, 2 * length)
    place = Coordinate(len(shape) - 1)

    def run(source: View, number: int, position: int, limit: int) -> NodeRead:
        """A read of words of a run by an earlier argument."""
        strides = (*source.strides[:-2], 2 * length, 0)
        moved = View(source.source, source.index, source.type, shape, source.base + number * length, strides)
        return NodeRead(moved, gather=(position, 1, limit))

    def is_first(at: Word, other: Word, mine: Any, theirs: Any) -> Word:
        """1 where the first run has a word that the second one's doesn't precede."""
        return (at >= 0) & ((other < 0) | (precedes(theirs, mine) ^ 1))

    def compared(count: View, bit: int, name: str) -> list[View | NodeRead]:
        """Positions t - 1 and k - t in the runs (-1 outside), and the words there; without a bit: i and k - i."""
        step = max(bit, 1)

        def first_at(i: Word, k: Word) -> Word:
            at = i + (step - 1)
            inside = below(at, length) & (at < k) if bit else below(at, length)
            return select(inside, at, -1)

        def second_at(i: Word, k: Word) -> Word:
            at = k - i - bit
            return select(below(at, length), at, -1)

        first = emitter.map(shape, DType.I32, [count, place], first_at, f"{name}.first")
        second = emitter.map(shape, DType.I32, [count, place], second_at, f"{name}.second")
        return [first, second, run(values, 0, 0, length), run(values, 1, 1, length)]

    count = emitter.map(shape, DType.I32, [place], lambda k: k.word(0), f"{part}.none")
    bit = length
    while bit:
        name, step = f"{part}.bit_{bit}", bit

        def more(at: Word, other: Word, mine: Any, theirs: Any, i: Word, step: int = step) -> Word:
            return select(is_first(at, other, mine, theirs), i + step, i)

        count = emitter.map(shape, DType.I32, [*compared(count, bit, name), count], more, name)
        bit //= 2

    def source(at: Word, other: Word, mine: Any, theirs: Any) -> Word:
        return select(is_first(at, other, mine, theirs), at, other + length)

    chosen = emitter.map(shape, DType.I32, compared(count, 0, f"{part}.end"), source, f"{part}.sources")
    values_after, places_after = (
        emitter.map(shape, item.dtype, [chosen, run(item, 0, 0, 2 * length)], lambda _, word: word, f"{part}.{name}")
        for item, name in ((values, "values"), (places, "places"))
    )
    return values_after, places_after
