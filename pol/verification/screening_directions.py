"""A look over all checkpoints that replays nothing: which segments a verifier should choose beside those drawn.

It reads how far and in which direction weights and optimizer state moved; `pol.verification.screening` reads how far
the weights did. Nothing is decided by it: a segment that looks odd is replayed like any other, and one that looks well
may be false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.graph.step_program import Component, StepProgram
from pol.graph.types import DType
from pol.verification.distance import require_state

WINDOW = 3
"""Neighbours on each side that a segment is compared with."""
LEAST = 1e-3
"""The least that counts as typical: in a training that repeats itself a rounding isn't odd."""
MOST = 1e6
"""The suspicion of an update that is zero or isn't finite."""


def suspicions(program: StepProgram, states: Iterable[Sequence[Words]]) -> list[float]:
    """How odd each segment looks beside its neighbours: 0 is as usual, the greatest comes first.

    For each component: the length of the update (its logarithm) and its cosines with the updates before and after. Of
    each number the distance from the median of the neighbours counts, over what is typical in this training. A segment
    that goes elsewhere is odd by both cosines, its neighbours by one; else the oddest of the numbers counts.

    Three states are held at a time.

    Raises:
        ProtocolError: fewer than two states, or one isn't a state of the program.
    """
    slots = enumerate(program.slots)
    numbers = [(slot.component, i) for i, slot in slots if slot.type.dtype == DType.F32]
    places = {c: [i for own, i in numbers if own is c] for c in (Component.PARAMETER, Component.OPTIMIZER)}
    movements = {component: _Movement() for component, own in places.items() if own}
    count = 0
    for state in states:
        require_state(program, state)
        for component, movement in movements.items():
            movement.add(_flat(state, places[component]))
        count += 1
    if count < 2:
        raise ProtocolError("a screen compares the segments between checkpoints: give it two at least")
    parts = [part for movement in movements.values() for part in movement.oddities()]
    return [float(value) for value in np.max([np.zeros(count - 1), *parts], axis=0)]


def choose(program: StepProgram, states: Iterable[Sequence[Words]], count: int) -> list[int]:
    """The ``count`` segments that look oddest; equal ones in their order.

    Raises:
        ProtocolError: as `suspicions`.
    """
    found = suspicions(program, states)
    return sorted(range(len(found)), key=lambda i: (-found[i], i))[:count]


def _flat(state: Sequence[Words], places: Sequence[int]) -> NDArray[np.float64]:
    return np.concatenate([state[i].reshape(-1).view(np.float32).astype(np.float64) for i in places])


class _Movement:
    """The updates of one component, one state after the other."""

    def __init__(self) -> None:
        self._state: NDArray[np.float64] | None = None
        self._update: NDArray[np.float64] | None = None
        self._lengths: list[float] = []
        self._cosines: list[float] = []

    def add(self, state: NDArray[np.float64]) -> None:
        if self._state is not None:
            with np.errstate(all="ignore"):
                update = state - self._state
                self._lengths.append(float(np.linalg.norm(update)))
                if self._update is not None:
                    product = np.float64(self._lengths[-1]) * self._lengths[-2]
                    self._cosines.append(float((update * self._update).sum() / product))
            self._update = update
        self._state = state

    def oddities(self) -> list[NDArray[np.float64]]:
        """How odd each segment is by its length, and by its cosines with the updates before and after."""
        with np.errstate(all="ignore"):
            length = np.log2(np.array(self._lengths))
        moved = np.isfinite(length)
        # A cosine with an update that is zero or infinite says nothing about the other one.
        cosines = ([np.nan, *self._cosines], [*self._cosines, np.nan])
        turns = np.sum([_oddness(np.array(ends)) for ends in cosines], axis=0)
        return [np.where(moved, _oddness(length), MOST), turns / 2]


def _oddness(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each number is from the median of its neighbours, over what is typical of all; 0 if it has none."""
    residuals = np.zeros(values.size)
    known = np.isfinite(values)
    for i in np.flatnonzero(known):
        near = np.concatenate([values[max(0, i - WINDOW) : i], values[i + 1 : i + 1 + WINDOW]])
        near = near[np.isfinite(near)]
        residuals[i] = abs(values[i] - np.median(near)) if near.size else 0.0
    typical = float(np.median(residuals[known])) if known.any() else 0.0
    return residuals / max(typical, LEAST)
