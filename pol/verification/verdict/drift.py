"""Drift: what a solver adds to each segment, within the tolerance, in one direction (docs/spec/verdict.md#drift).

Roundings of honest machines point anywhere, so n of them add up like n steps of a random walk; pushes towards a goal
add up like n steps in one direction. Each residual counts by its direction alone, however short it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import DType

BUCKETS = 512
"""Of a sketch: squared lengths are estimated to within sqrt(2 / 512), six hundredths."""
CHANCE = 11.0
"""A score that independent residuals exceed with a probability of 1e-3 at most: even if all lie on one line, it is the
square of a normal number."""
SHARED = 0.5
"""The mean cosine of two residuals from which on they have a goal. Kernels that round in one direction (Winograd's
transforms in NNPACK) share up to 0.21, pushes at least 0.75."""
_BLOCK = 1 << 20

Sketch = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Direction:
    """The directions of a segment's residual, by component: sketches of unit vectors; None where nothing differs."""

    sketches: tuple[Sketch | None, Sketch | None, Sketch | None]


@dataclass(frozen=True)
class Drift:
    """Drift of a component over all replayed segments in which it differs."""

    component: Component
    segments: int
    score: float

    @property
    def limit(self) -> float:
        """The greatest score of an honest solver."""
        return max(CHANCE, 1 + SHARED * (self.segments - 1))

    @property
    def is_found(self) -> bool:
        """Whether the residuals point in one direction."""
        return self.score > self.limit


def direction(program: StepProgram, replayed: Sequence[Words], end: Sequence[Words], seed: bytes) -> Direction:
    """The direction from a replayed state to the solver's.

    ``seed`` chooses the sketch: a solver that knows it beforehand can hide in it.
    """
    sums = {component: np.zeros(BUCKETS) for component in Component}
    squares = dict.fromkeys(Component, 0.0)
    for number, (slot, ours, theirs) in enumerate(zip(program.slots, replayed, end, strict=True)):
        if slot.type.dtype is not DType.F32:
            continue
        key = int.from_bytes(keccak256(b"pol/drift/1" + seed + number.to_bytes(4, "big"))[:16], "big")
        draws = np.random.Generator(np.random.Philox(key=key))
        a, b = (words.reshape(-1).view(np.float32) for words in (ours, theirs))
        for at in range(0, a.size, _BLOCK):
            part = slice(at, at + _BLOCK)
            found = np.subtract(b[part], a[part], dtype=np.float64)
            found[~np.isfinite(found)] = 0
            places = draws.integers(0, 2 * BUCKETS, found.size, dtype=np.uint16)
            signed = np.where(places & 1, -found, found)
            sums[slot.component] += np.bincount(places >> 1, signed, BUCKETS)
            squares[slot.component] += float(found @ found)
    parameter, buffer, optimizer = (sums[c] / squares[c] ** 0.5 if squares[c] else None for c in Component)
    return Direction((parameter, buffer, optimizer))


def drifts(directions: Sequence[Direction]) -> tuple[Drift, ...]:
    """The drift of each component that differs somewhere.

    score = |sum of n unit vectors|^2 / n, its expectation 1 for independent ones and n for equal ones.
    """
    found = []
    for component in Component:
        sketches = [sketch for each in directions if (sketch := each.sketches[component - 1]) is not None]
        if sketches:
            whole = np.sum(sketches, axis=0)
            found.append(Drift(component, len(sketches), float(whole @ whole) / len(sketches)))
    return tuple(found)
