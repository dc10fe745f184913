"""Short sketches of differences between states: lengths, angles and spans of few of them survive.

A count sketch (Charikar et al., 2002) adds each number, with a random sign, to one of some hundred buckets. It is
linear, so sums and projections of sketches are sketches of sums and projections; and no state has to be kept.
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

Sketch = npt.NDArray[np.float64]
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Difference:
    """The difference of two states over one component's f32 words: its sketch, and its squared length."""

    sketch: Sketch
    squared: float


def differences(
    program: StepProgram, x: Sequence[Words], y: Sequence[Words], seed: bytes, buckets: int
) -> tuple[Difference, Difference, Difference]:
    """The sketches of y - x by component, in the units of distances (slots of a scale count so many times finer).

    Whoever knows ``seed`` beforehand can hide in what the sketch doesn't see. Pairs that aren't finite count as equal.
    """
    sums = {component: np.zeros(buckets) for component in Component}
    squares = dict.fromkeys(Component, 0.0)
    for number, (slot, one, other) in enumerate(zip(program.slots, x, y, strict=True)):
        if slot.type.dtype is not DType.F32:
            continue
        key = int.from_bytes(keccak256(b"pol/sketch/1" + seed + number.to_bytes(4, "big"))[:16], "big")
        draws, scale = np.random.Generator(np.random.Philox(key=key)), 2.0**slot.scale
        a, b = (words.reshape(-1).view(np.float32) for words in (one, other))
        for at in range(0, a.size, _BLOCK):
            part = slice(at, at + _BLOCK)
            with np.errstate(invalid="ignore"):
                found = np.subtract(b[part], a[part], dtype=np.float64) * scale
            found[~np.isfinite(found)] = 0
            places = draws.integers(0, 2 * buckets, found.size, dtype=np.uint16)
            sums[slot.component] += np.bincount(places >> 1, np.where(places & 1, -found, found), buckets)
            squares[slot.component] += float(found @ found)
    parameter, buffer, optimizer = (Difference(sums[c], squares[c]) for c in Component)
    return parameter, buffer, optimizer
