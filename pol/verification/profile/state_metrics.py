"""Norms and angles between states, from exact integers: for people and profiles. The chain compares squares only.

A number counts as in docs/spec/verdict.md: ``fix(x)``, in units of 2^-(40 + scale of its slot). Sums of integers have
no order, so equal states give equal metrics on every machine; floating point enters in the last division alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pol.arithmetic.primitives import Words
from pol.claims.distance import (
    BLOCK,
    INFINITE,
    UNEQUAL,
    differences,
    require_state,
    saturating_sum,
    squares,
    sum_columns,
)
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import DType

UNIT = 2.0**-40
"""The value of the integer 1 in a slot of scale 0."""


@dataclass(frozen=True)
class ComponentGap:
    """The difference of two states over one component: exact norms over its f32 words, and what has no norm.

    ``infinite`` counts pairs of numbers of which one has no distance (not finite, or too large), ``unequal`` integers
    that differ; neither is in the norms.
    """

    elements: int
    l1: int
    squared: int
    linf: int
    infinite: int
    unequal: int

    @property
    def distance(self) -> int:
        """The distance that the chain compares: `pol.claims.distance.component_distances`."""
        return saturating_sum([INFINITE if self.infinite else self.squared, UNEQUAL * self.unequal])


@dataclass(frozen=True)
class ComponentMetrics:
    """Distances between ``x`` (the replay) and ``y`` (another execution), over one component.

    ``l1``, ``l2`` and ``linf`` are norms of ``x - y`` and ``relative_*`` the same over the norm of ``x - start``, the
    reference of Jia et al. (2021); ``cosine`` is 1 - cos of the angle between the updates ``x - start`` and
    ``y - start``. Any of them is NaN where it is undefined: a caller must never read NaN as agreement.
    """

    elements: int
    l1: float
    l2: float
    linf: float
    relative_l1: float
    relative_l2: float
    relative_linf: float
    cosine: float


def gaps(
    program: StepProgram, x: Sequence[Words], y: Sequence[Words]
) -> tuple[ComponentGap, ComponentGap, ComponentGap]:
    """The differences of two states over parameters, buffers and optimizer state, in one pass."""
    require_state(program, x)
    require_state(program, y)
    parts: dict[Component, list[ComponentGap]] = {component: [] for component in Component}
    for slot, a, b in zip(program.slots, x, y, strict=True):
        parts[slot.component] += _blocks(slot.type.dtype, a.reshape(-1), b.reshape(-1), slot.scale)
    parameter, buffer, optimizer = (_total(parts[component]) for component in Component)
    return parameter, buffer, optimizer


def component_metrics(
    program: StepProgram, start: Sequence[Words], x: Sequence[Words], y: Sequence[Words], component: Component
) -> ComponentMetrics | None:
    """The metrics of one component's f32 slots; None if the program has none."""
    place = component - 1
    update = gaps(program, x, start)[place]
    if not update.elements:
        return None
    return derive(update, gaps(program, x, y)[place], gaps(program, y, start)[place])


def derive(update: ComponentGap, gap: ComponentGap, other: ComponentGap) -> ComponentMetrics:
    """The metrics that follow from ``x - start``, ``x - y`` and ``y - start``."""
    if update.infinite or gap.infinite or other.infinite:
        return ComponentMetrics(gap.elements, *[math.nan] * 7)
    return ComponentMetrics(
        elements=gap.elements,
        l1=gap.l1 * UNIT,
        l2=math.sqrt(gap.squared) * UNIT,
        linf=gap.linf * UNIT,
        relative_l1=_ratio(gap.l1, update.l1),
        relative_l2=math.sqrt(_ratio(gap.squared, update.squared)),
        relative_linf=_ratio(gap.linf, update.linf),
        cosine=cosine_distance(update.squared, other.squared, gap.squared),
    )


def cosine_distance(uu: int, vv: int, difference: int) -> float:
    """1 - cos of two vectors u and v, from ``u.u``, ``v.v`` and ``(u - v).(u - v)``; NaN if either vector is zero.

    0 for equal directions, 1 for a right angle, 2 for opposite ones. ``2 u.v = u.u + v.v - (u - v).(u - v)``, exactly,
    and ``1 - cos = (uu vv - uv^2) / (n (n + uv))`` with ``n = |u| |v|``: small angles keep all their digits.
    """
    if uu == 0 or vv == 0:
        return math.nan
    uv = Fraction(uu + vv - difference, 2)
    sine = Fraction(uu * vv) - uv * uv
    cosine = _divide(uv, uu, vv)
    if uv <= 0:
        return 1.0 - cosine
    return float(sine / (uu * vv)) / (1.0 + cosine)


def _divide(uv: Fraction, uu: int, vv: int) -> float:
    """``uv / sqrt(uu vv)``, from -1 to 1, whatever the size of the integers."""
    square = float(uv * uv / (uu * vv))
    return math.copysign(min(1.0, math.sqrt(square)), uv)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _blocks(dtype: DType, x: Words, y: Words, scale: int) -> list[ComponentGap]:
    blocks = range(0, x.size, BLOCK)
    return [_block(dtype, x[low : low + BLOCK], y[low : low + BLOCK], scale) for low in blocks]


def _block(dtype: DType, x: Words, y: Words, scale: int) -> ComponentGap:
    if dtype != DType.F32:
        return ComponentGap(0, 0, 0, 0, 0, int(np.count_nonzero(x != y)))
    d, infinite = differences(x, y, scale)
    halves = [d & np.uint64(0xFFFFFFFF), d >> np.uint64(32)]
    return ComponentGap(
        x.size, sum_columns(halves), sum_columns(squares(d)), int(d.max()), int(np.count_nonzero(infinite)), 0
    )


def _total(parts: Sequence[ComponentGap]) -> ComponentGap:
    return ComponentGap(
        elements=sum(part.elements for part in parts),
        l1=sum(part.l1 for part in parts),
        squared=sum(part.squared for part in parts),
        linf=max((part.linf for part in parts), default=0),
        infinite=sum(part.infinite for part in parts),
        unequal=sum(part.unequal for part in parts),
    )
