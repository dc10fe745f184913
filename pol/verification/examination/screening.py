"""Screening of all checkpoints for segments that differ from their neighbors: a hint where to replay.

It is no evidence, and it executes nothing. In an honest training the length and the direction of a segment's update
change slowly. A solver that skips or pads steps, or trains towards another goal, is noticed; one that forges with care
is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pol.arithmetic.primitives import Words
from pol.claims.distance import require_state
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import DType
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof, load_checkpoint
from pol.training.task.task_document import LoadedTask

Series = NDArray[np.float64]
REACH = 3
"""Neighbors on either side that a number is compared with."""
_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation, which outliers don't move."""
LEAST = 1e-3
"""The least that counts as typical: in a training that repeats itself a rounding isn't odd."""


def oddness(values: Series) -> Series:
    """0 is as suggested, 1 a standard deviation of what is typical; 0 too where a number isn't finite, or is alone.

    Neighbors suggest the middle between both sides, so that a schedule is followed; at an end, the line of the other
    side. The median of `REACH` suggestions counts: a neighbor that is odd itself doesn't make this one odd.
    """
    seen = np.where(np.isfinite(values), values, np.nan)
    found: Series = np.array([_residual(seen, i) for i in range(seen.size)])
    known = found[~np.isnan(found)]
    typical = max(_DEVIATION * float(np.median(known)), LEAST) if known.size else LEAST
    return np.where(np.isnan(found), 0.0, found) / typical


def _residual(values: Series, i: int) -> float:
    """The distance of a number from its suggestion, in units of the suggestions' noise; NaN without suggestions."""
    middles = [(i - k, i + k, 0.5, 0.5) for k in range(1, REACH + 1)]
    lines = [(i + side, i + 2 * side, 2.0, -1.0) for side in (-1, 1)]
    suggested: list[float] = []
    noise: list[float] = []
    for a, b, weight_a, weight_b in middles + lines:
        if len(suggested) < REACH and min(a, b) >= 0 and max(a, b) < values.size:
            suggestion = float(weight_a * values[a] + weight_b * values[b])
            if not math.isnan(suggestion):
                suggested.append(suggestion)
                noise.append(math.hypot(weight_a, weight_b, 1.0))
    return float(abs(values[i] - np.median(suggested)) / np.median(noise)) if suggested else math.nan


STILL = 0.1
"""Training stands still after a segment if in no later one more than this part of its moving numbers moves."""
SUSPICIOUS = 6.0
"""Scores from here on are named: 1 is a standard deviation of what is typical."""
_LOOKED_AT = (Component.PARAMETER, Component.OPTIMIZER)
BLOCK = 1 << 16
"""Numbers that are compared at a time."""


@dataclass(frozen=True)
class Suspicion:
    """How much a segment differs from its neighbors.

    ``moved`` is the L2 norm of the change of its f32 parameters, NaN if it couldn't be seen; ``score`` how far its
    updates are, in length or direction, from what the neighbors suggest, over what is typical in this training.
    """

    segment: int
    moved: float
    score: float

    @property
    def is_named(self) -> bool:
        """Whether it is far outside of what is typical."""
        return self.score >= SUSPICIOUS


def screen(
    store: Store, task: LoadedTask, proof: LearningProof, advance: Callable[[int, int], None] = lambda done, total: None
) -> list[Suspicion]:
    """All segments of a learning proof, the most suspicious first; unreadable checkpoints are skipped."""
    return ranked(suspicions(task.program, _states(store, task, proof, advance)))


def ranked(found: Iterable[Suspicion]) -> list[Suspicion]:
    """The most suspicious first, equal ones in their order."""
    return sorted(found, key=lambda s: (-s.score, s.segment))


def suspicions(program: StepProgram, states: Iterable[Sequence[Words] | None]) -> list[Suspicion]:
    """The segments between checkpoints, in order; None is a checkpoint that can't be seen.

    Of weights and of optimizer state: the length of the update (its logarithm), and its cosines with the updates before
    and after. A segment that goes elsewhere is odd by both cosines, its neighbors by one; else the oddest of the
    numbers counts. A segment whose ends can't be seen, aren't finite or don't differ in one of these has an infinite
    score: a replay says what it is. So has the segment after which training stands still (`STILL`), however it got
    there: all behind it may be true, and costs next to nothing. Three states are held at a time.
    """
    places = {component: _places(program, component) for component in _LOOKED_AT}
    movements = {component: _Movement(own) for component, own in places.items() if own}
    count = 0
    for state in states:
        if state is not None:
            require_state(program, state)
        for movement in movements.values():
            movement.add(state)
        count += 1
    if count < 2:
        raise ProtocolError("a screen compares the segments between checkpoints: give at least two")
    scores = np.max([np.zeros(count - 1), *(movement.scores() for movement in movements.values())], axis=0)
    weights = movements.get(Component.PARAMETER)
    if weights is not None:
        scores[weights.before_standstills()] = np.inf
    moved = [0.0] * (count - 1) if weights is None else weights.lengths
    return [Suspicion(i, *found) for i, found in enumerate(zip(moved, scores.tolist(), strict=True))]


def _states(
    store: Store, task: LoadedTask, proof: LearningProof, advance: Callable[[int, int], None]
) -> Iterator[Sequence[Words] | None]:
    for done, entry in enumerate(proof.checkpoints, 1):
        try:
            yield load_checkpoint(store, task, entry)
        except (ProtocolError, OperationalError, MemoryError):
            yield None
        advance(done, len(proof.checkpoints))


def _places(program: StepProgram, component: Component) -> list[int]:
    slots = enumerate(program.slots)
    return [i for i, slot in slots if slot.component is component and slot.type.dtype is DType.F32]


def _blocks(state: Sequence[Words]) -> Iterator[Series]:
    """The numbers of a state in binary64, so many at a time that large states take no copies."""
    for words in state:
        numbers = words.reshape(-1).view(np.float32)
        for begin in range(0, numbers.size, BLOCK):
            yield numbers[begin : begin + BLOCK].astype(np.float64)


def _compared(
    earlier: Sequence[Words] | None, before: Sequence[Words] | None, after: Sequence[Words] | None
) -> tuple[float, float, float]:
    """An update: its square, how many numbers it moves, and its product with the update before it.

    NaN where a state couldn't be seen, or isn't finite.
    """
    if before is None or after is None:
        return math.nan, math.nan, math.nan
    square = moving = product = 0.0
    with np.errstate(all="ignore"):
        for now, last, first in zip(
            _blocks(after), _blocks(before), _blocks(before if earlier is None else earlier), strict=True
        ):
            update = now - last
            square += float(update @ update)
            moving += float(np.count_nonzero(update))
            product += float(update @ (last - first))
    return square, moving, math.nan if earlier is None else product


class _Movement:
    """The updates of the slots of one component, one state after the other."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places
        self._states: list[Sequence[Words] | None] = []
        self._cosines: list[float] = []
        self._moving: list[float] = []
        self.lengths: list[float] = []

    def add(self, state: Sequence[Words] | None) -> None:
        self._states = [*self._states[-2:], None if state is None else [state[place] for place in self._places]]
        if len(self._states) < 2:
            return
        earlier = self._states[0] if len(self._states) == 3 else None
        square, moving, product = _compared(earlier, *self._states[-2:])
        self.lengths.append(math.sqrt(square))
        self._moving.append(moving if math.isfinite(square) else math.nan)
        if len(self._states) == 3:
            with np.errstate(all="ignore"):
                self._cosines.append(float(product / (np.float64(self.lengths[-1]) * self.lengths[-2])))

    def before_standstills(self) -> NDArray[np.intp]:
        """The segments after which few numbers move in all others; one that can't be seen isn't looked at."""
        moving = np.array(self._moving)
        later = np.fmax.accumulate(moving[::-1])[::-1][1:]
        return np.flatnonzero((later <= STILL * moving[:-1]) & (moving[:-1] > 0))

    def scores(self) -> Series:
        """The oddness of each segment: by its length, or by its cosines with the updates before and after."""
        with np.errstate(all="ignore"):
            lengths = np.log(np.array(self.lengths))
        turns = np.array([0.0, *oddness(np.array(self._cosines)), 0.0])
        return np.where(np.isfinite(lengths), np.maximum(oddness(lengths), (turns[:-1] + turns[1:]) / 2), np.inf)
