"""`grid_sample`: words at positions that are data, from their neighbors.

Coordinates are unnormalized, and gradients vanish at the borders, as in torch's kernel for processors.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from operator import and_, mul
from typing import TypeAlias

import torch
from torch import Tensor

from pol.graph.capture.replacements.pullback import pulled_back
from pol.graph.capture.replacements.table import replaces

NEAREST, CUBIC = 1, 2
BORDER, REFLECTION = 1, 2
_A = -0.75
"""The parameter of the cubic kernel."""

Tap: TypeAlias = "tuple[Tensor, Tensor | None]"
"""Whole positions along a dimension as floats, and their weights; None is one."""


@replaces("grid_sampler_2d.default", "grid_sampler_3d.default")
def _grid_sample(value: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool) -> Tensor:
    """(examples, channels, sizes...) at a grid (examples, outputs..., coordinates) in -1 .. 1, the last one first."""
    rank, sizes = grid.shape[-1], value.shape[2:]
    places = [_unnormalized(grid[..., rank - 1 - axis].flatten(1), size, corners) for axis, size in enumerate(sizes)]
    if interpolation == CUBIC:
        taps = [_cubic(place, size, padding, corners) for place, size in zip(places, sizes, strict=True)]
    else:
        bounded = [_bounded(place, size, padding, corners) for place, size in zip(places, sizes, strict=True)]
        taps = [[(place.round(), None)] if interpolation == NEAREST else _linear(place) for place in bounded]
    flat = value.flatten(2)
    total: Tensor | None = None
    for neighbor in itertools.product(*taps):
        words = _at(flat, [place for place, _ in neighbor], sizes)
        weights = [weight for _, weight in neighbor if weight is not None]
        words = words * reduce(mul, weights).unsqueeze(1) if weights else words
        total = words if total is None else total + words
    if total is None:
        raise AssertionError("a position has a neighbor")
    return total.reshape(*value.shape[:2], *grid.shape[1:-1])


@replaces("grid_sampler_2d_backward.default", "grid_sampler_3d_backward.default")
def _grid_sample_backward(
    gradient: Tensor, value: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool, mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    def sampled(value: Tensor, grid: Tensor) -> Tensor:
        return _grid_sample(value, grid, interpolation, padding, corners)

    found = pulled_back(sampled, gradient, value, grid)
    return tuple(item if is_wanted else None for item, is_wanted in zip(found, mask, strict=True))


def _unnormalized(place: Tensor, size: int, corners: bool) -> Tensor:
    return (place + 1) * ((size - 1) / 2) if corners else (place + 1) * (size / 2) - 0.5


def _bounded(place: Tensor, size: int, padding: int, corners: bool) -> Tensor:
    """Where a position outside of the tensor reads, by the kind of padding."""
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if not span:
            return torch.zeros_like(place)
        far = (place - low).abs()
        turns = (far / span).detach().floor()
        rest = torch.fmod(far, span)
        place = torch.where(torch.remainder(turns, 2.0) == 0, rest + low, span + low - rest)
    if padding in {BORDER, REFLECTION}:
        inside = (place > 0) & (place < size - 1)
        place = torch.where(inside, place, place.detach().clamp(0, size - 1))
    return place


def _linear(place: Tensor) -> list[Tap]:
    start = place.detach().floor()
    return [(start, start + 1 - place), (start + 1, place - start)]


def _cubic(place: Tensor, size: int, padding: int, corners: bool) -> list[Tap]:
    start = place.detach().floor()
    t = place - start
    weights = [_far(t + 1), _near(t), _near(1 - t), _far(2 - t)]
    return [
        (_bounded(start + (tap - 1), size, padding, corners), weight)
        for tap, weight in zip(range(4), weights, strict=True)
    ]


def _near(x: Tensor) -> Tensor:
    """The cubic kernel at distances of at most 1."""
    return ((_A + 2) * x - (_A + 3)) * x * x + 1


def _far(x: Tensor) -> Tensor:
    """The cubic kernel at distances from 1 to 2."""
    return ((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A


def _at(flat: Tensor, places: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """(examples, channels, positions) at whole positions (examples, outputs) of each dimension; 0 outside."""
    whole = [place.detach().clamp(-1, size).to(torch.int64) for place, size in zip(places, sizes, strict=True)]
    inside = reduce(and_, [(at >= 0) & (at < size) for at, size in zip(whole, sizes, strict=True)])
    index = torch.zeros_like(whole[0])
    for at, size in zip(whole, sizes, strict=True):
        index = index * size + at.clamp(0, size - 1)
    words = flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1))
    return torch.where(inside.unsqueeze(1), words, 0.0)
