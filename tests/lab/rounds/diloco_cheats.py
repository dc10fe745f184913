"""Lies of a DiLoCo worker in round 1: steps left out, and a pseudo-gradient made greater."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import LOCAL, MESSAGE
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.source_rules import ClaimPlace

LYING_ROUND = 1


class Sandbagger(ClaimAuthor):
    """Does two fifths of the steps, goes on in the same direction, and adds a little noise."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if self.plan.phases[place.phase].name != LOCAL or place.round != LYING_ROUND:
            return super().run(place, start, first_step, steps)
        done = 2 * steps // 5
        end = super().run(place, start, first_step, done)
        noise = np.random.default_rng(0)
        return [_extrapolated(before, after, steps / done, noise) for before, after in zip(start, end, strict=True)]


class Magnifier(ClaimAuthor):
    """Sends ten times its pseudo-gradient."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == MESSAGE and place.round == LYING_ROUND:
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end


def _extrapolated(before: Words, after: Words, times: float, noise: np.random.Generator) -> Words:
    start, end = before.view(np.float32), after.view(np.float32)
    moved = start + (end - start) * np.float32(times)
    return (moved * (1 + 1e-3 * noise.standard_normal(moved.shape))).astype(np.float32).view(np.uint32)
