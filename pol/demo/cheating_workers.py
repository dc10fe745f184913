"""A worker that saves itself most of a round's steps, and one whose process is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import LOCAL, MESSAGE
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace


class Sandbagger(ClaimAuthor):
    """Does two fifths of the steps of one round, goes on in the same direction, and adds a little noise."""

    def __init__(self, *given: Any, lying_round: int = 1) -> None:
        super().__init__(*given)
        self.lying_round = lying_round

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end of a phase's program, or what looks like it."""
        if self.plan.phases[place.phase].name != LOCAL or place.round != self.lying_round:
            return super().run(place, start, first_step, steps)
        done = 2 * steps // 5
        end = super().run(place, start, first_step, done)
        noise = np.random.default_rng(0)
        return [_extrapolated(before, after, steps / done, noise) for before, after in zip(start, end, strict=True)]


class Mortal(ClaimAuthor):
    """Honest; its process is killed in a round, when its work is signed and its message isn't sent yet."""

    def __init__(self, *given: Any, last_round: int) -> None:
        super().__init__(*given)
        self.last_round = last_round

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end of a phase's program, or no end at all."""
        if self.plan.phases[place.phase].name == MESSAGE and place.round == self.last_round:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(place, start, first_step, steps)


def _extrapolated(before: Words, after: Words, times: float, noise: np.random.Generator) -> Words:
    start, end = before.view(np.float32), after.view(np.float32)
    moved = start + (end - start) * np.float32(times)
    return (moved * (1 + 1e-3 * noise.standard_normal(moved.shape))).astype(np.float32).view(np.uint32)
