"""Drift: what a solver adds to each segment, within the tolerance, in one direction (docs/spec/verdict.md#drift).

Roundings of honest machines point anywhere, so n of them add up like n steps of a random walk; pushes towards a goal
add up like n steps in one direction. Each residual counts by its direction alone, however short it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Words
from pol.graph.step_program import Component, StepProgram
from pol.verification.verdict.state_sketch import Sketch, differences

BUCKETS = 512
"""Of a sketch: squared lengths are estimated to within sqrt(2 / 512), six hundredths."""
CHANCE = 11.0
"""A score that independent residuals exceed with a probability of 1e-3 at most: even if all lie on one line, it is the
square of a normal number."""
SHARED = 0.5
"""The mean cosine of two residuals from which on they have a goal. Kernels that round in one direction (Winograd's
transforms in NNPACK) share up to 0.21, pushes at least 0.75."""


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
    found = differences(program, replayed, end, seed, BUCKETS)
    parameter, buffer, optimizer = (each.sketch / each.squared**0.5 if each.squared else None for each in found)
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
