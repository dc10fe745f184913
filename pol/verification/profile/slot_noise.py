"""How far honest runs of a profile part in each slot of the state, and how far a solver could go there.

A threshold bounds the sum over a component. So where one slot moves far, or by rounding alone, the limit may say
nothing about the others. `require_limits` finds such slots; `slot_scales` mends them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import THRESHOLD_BITS, travelled
from pol.claims.segment_claim import Three
from pol.errors import UnsupportedError
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import DType

NAMED = 3
"""Slots that a refusal names at most."""
_CLEAN = 2.0**-12
"""A number that reruns move by less than this, of its way, was trained; what is more than `_NOISY` is rounding."""
_NOISY = 2.0**-6
_CAP = 2.0**-6
"""Of the way of trained numbers: what thresholds allow at most."""
_UNIT = 2.0**-40
"""The value of the integer 1 in distances, for a slot of scale 0."""


@dataclass(frozen=True)
class SlotNoise:
    """One slot over all portions of a profile. Lengths are L2, in the slot's own numbers.

    ``noise`` is the longest way from a canonical end to that of a rerun (infinite where there is no distance), ``way``
    the shortest from a start to the canonical end. ``trained`` is the share of the squared way that lies in numbers
    which reruns repeat, ``random`` whether there are numbers that move by rounding. ``length`` and ``greatest`` are the
    norm and the greatest magnitude of the state.
    """

    name: str
    component: Component
    scale: int
    noise: float
    way: float
    trained: float
    random: bool
    length: float
    greatest: float

    @property
    def share(self) -> float:
        """What the slot contributes to the distance of its component: the square of its noise, as it is weighed."""
        return (self.noise * 2.0**self.scale) ** 2


class NoiseMeter:
    """Collects the noise of slots while a profile is measured; holds the numbers of one state besides the portion's."""

    def __init__(self, program: StepProgram, names: Sequence[str]) -> None:
        self._program, self._names = program, names
        self._found: list[SlotNoise] = []
        self._start: Sequence[Words] = ()
        self._end: Sequence[Words] = ()
        self._furthest: list[NDArray[np.float32]] = []
        self._noise: list[float] = []

    def begin(self, start: Sequence[Words], end: Sequence[Words]) -> None:
        """A portion, executed canonically."""
        self._start, self._end = start, end
        self._furthest = [np.zeros(slot.type.shape, np.float32) for slot in self._program.slots]
        self._noise = [0.0 for _ in self._program.slots]

    def rerun(self, other: Sequence[Words]) -> None:
        """The end of one of the portion's reruns."""
        for place, (slot, x, y) in enumerate(zip(self._program.slots, self._end, other, strict=True)):
            if slot.type.dtype is not DType.F32:
                self._noise[place] = max(self._noise[place], 0.0 if np.array_equal(x, y) else math.inf)
                continue
            apart = _apart(x, y)
            self._noise[place] = max(self._noise[place], _norm(apart))
            np.maximum(self._furthest[place], apart, out=self._furthest[place])

    def end(self) -> None:
        """The portion has no more reruns."""
        rows = [self._row(place) for place in range(len(self._program.slots))]
        self._found = rows if not self._found else [_worse(a, b) for a, b in zip(self._found, rows, strict=True)]

    @property
    def slots(self) -> tuple[SlotNoise, ...]:
        """All slots, in the order of the program."""
        return tuple(self._found)

    def _row(self, place: int) -> SlotNoise:
        slot, noise = self._program.slots[place], self._noise[place]
        if slot.type.dtype is not DType.F32:
            return SlotNoise(self._names[place], slot.component, slot.scale, noise, 0.0, 0.0, False, 0.0, 0.0)
        moved, furthest, end = _apart(self._end[place], self._start[place]), self._furthest[place], self._end[place]
        way = _norm(moved)
        clean = _norm(moved[furthest <= moved * np.float32(_CLEAN)])
        numbers = np.nan_to_num(np.abs(end.view(np.float32)), posinf=0.0)
        return SlotNoise(
            name=self._names[place],
            component=slot.component,
            scale=slot.scale,
            noise=noise,
            way=way,
            trained=(clean / way) ** 2 if 0 < way < math.inf else 0.0,
            random=bool(((furthest > moved * np.float32(_NOISY)) & (furthest > 0)).any()),
            length=_norm(numbers),
            greatest=float(numbers.max(initial=0.0)),
        )


def limits(slots: Sequence[SlotNoise], thresholds: Three, references: Sequence[Three]) -> list[float]:
    """How far a solver can go in each slot, L2 in its own numbers, if it goes nowhere else.

    ``references`` are those of the profiled portions, at least one; the longest counts.
    """
    allowed = [
        _UNIT * math.sqrt((threshold / 2**THRESHOLD_BITS) * max(travelled(each[place]) for each in references))
        for place, threshold in enumerate(thresholds)
    ]
    return [allowed[slot.component - 1] / 2.0**slot.scale for slot in slots]


def require_limits(slots: Sequence[SlotNoise], thresholds: Three, references: Sequence[Three]) -> None:
    """Check that no trained slot may stay where it is, and that trained numbers don't hide among noisy ones.

    Raises:
        UnsupportedError: one may; the message names such slots.
    """
    loose: list[tuple[float, str]] = []
    for slot, limit in zip(slots, limits(slots, thresholds, references), strict=True):
        way = slot.way * math.sqrt(slot.trained)
        # Of a tensor in which all is rounding nothing was trained, and one that stands still has no way.
        if way and slot.trained > _CAP and limit > way * (_CAP if slot.random else 1.0):
            mixed = ", of which a part moves by rounding alone" if slot.random else ""
            loose.append((limit / way, f"{slot.name} ({limit / way:.2g} of its way{mixed})"))
    if loose:
        named = ", ".join(text for _, text in sorted(loose, reverse=True)[:NAMED])
        raise UnsupportedError(
            f"the thresholds of this task say nothing about {named}: others move so far, or by rounding alone, that a "
            "cheat could put there what it likes. Weigh each tensor by its own noise (`pol profile --scale`), or use "
            "exact mode; a tensor of which a part moves by rounding alone has to be split, or to go"
        )


def furthest(slots: Sequence[SlotNoise], component: Component) -> list[tuple[str, float]]:
    """The slots of a component in which reruns part, furthest first, with their shares of the sum."""
    rows = [(slot.name, slot.share) for slot in slots if slot.component is component and slot.noise]
    if any(math.isinf(share) for _, share in rows):
        rows = [(name, 1.0 if math.isinf(share) else 0.0) for name, share in rows]
    whole = sum(share for _, share in rows) or 1.0
    return sorted(((name, share / whole) for name, share in rows), key=lambda row: -row[1])


def _apart(x: Words, y: Words) -> NDArray[np.float32]:
    """``|x - y|`` of the numbers of a slot; infinite where there is none, 0 for equal words."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(x.view(np.float32) - y.view(np.float32))
    return np.where(x == y, np.float32(0), np.nan_to_num(found, nan=np.inf, posinf=np.inf)).astype(np.float32)


def _norm(numbers: NDArray[np.float32]) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.square(numbers, dtype=np.float64).sum()))


def _worse(a: SlotNoise, b: SlotNoise) -> SlotNoise:
    shorter = a if a.way <= b.way else b
    return replace(
        shorter,
        noise=max(a.noise, b.noise),
        random=a.random or b.random,
        length=max(a.length, b.length),
        greatest=max(a.greatest, b.greatest),
    )
