"""Intervals that hold every number of a tensor, and those of the values of a graph as far as they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from torch import Tensor

from pol.graph.aten_graph import Argument, AtenGraph, Ref

Number: TypeAlias = "int | float"
I32_LEAST, I32_GREATEST = -(2**31), 2**31 - 1
LARGEST_FLOAT = 3.4028234663852886e38


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``; integers exactly, binary32 numbers up to their own rounding."""

    low: Number
    high: Number

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    @property
    def corners(self) -> tuple[Number, Number]:
        """Both ends."""
        return self.low, self.high

    def fits(self) -> bool:
        """Whether every number is an i32."""
        return self.low >= I32_LEAST and self.high <= I32_GREATEST


ANY = Interval(-LARGEST_FLOAT, LARGEST_FLOAT)
ZERO: Interval = Interval(0, 0)
BOOLEAN: Interval = Interval(0, 1)
UNIT: Interval = Interval(0.0, 1.0)


def interval_of(tensor: Tensor) -> Interval:
    """The least interval around the finite numbers of a tensor."""
    tensor = tensor.detach()
    if not tensor.numel():
        return ZERO
    if tensor.is_floating_point():
        low, high = (float(end) for end in tensor.aminmax())  # NaN if there is one
        if isfinite(low) and isfinite(high):
            return Interval(low, high)
        finite = tensor[tensor.isfinite()]
        return Interval(float(finite.min()), float(finite.max())) if finite.numel() else ZERO
    least, greatest = tensor.aminmax()
    return Interval(int(least), int(greatest))


class KnownIntervals:
    """The intervals of the first values of a graph: its inputs, then as many nodes as have been added to `values`."""

    def __init__(self, graph: AtenGraph, inputs: Sequence[Interval]) -> None:
        self.graph = graph
        self.values: list[tuple[Interval, ...]] = [(interval,) for interval in inputs]

    def of(self, argument: Argument) -> Interval:
        """The interval of an argument: a value, a number, or all of a list."""
        if isinstance(argument, Ref):
            return self.values[argument.value][argument.output]
        if isinstance(argument, bool | int | float):
            return Interval(argument, argument) if isfinite(argument) else ZERO
        if isinstance(argument, tuple) and argument:
            intervals = [self.of(item) for item in argument]
            return Interval(min(i.low for i in intervals), max(i.high for i in intervals))
        return ZERO

    def shape(self, argument: Argument) -> tuple[int, ...]:
        """The shape of a value; that of a number is ()."""
        return self.graph.type_of(argument).shape if isinstance(argument, Ref) else ()
