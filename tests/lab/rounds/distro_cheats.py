"""Lies about a message of DisTrO, with an honest residual: another's message, and signs that are drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.distro import STEP
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace

FROM_ROUND = 1


class Copycat(ClaimAuthor):
    """Sends what another worker has sent in the round before."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if is_lie(self, place):
            others = self.rosters[place.round - 1].members
            other = next(member.worker for member in others if member.worker != self.name)
            end[-1] = self.known[ClaimPlace(other, place.round - 1, place.phase, 0)].words[len(end) - 1]
        return end


class RandomSigns(ClaimAuthor):
    """Sends its frequencies with drawn signs."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if is_lie(self, place):
            drawn = np.random.default_rng(0).integers(0, 1 << 32, end[-1].shape, dtype=np.uint32)
            end[-1] = (end[-1] & np.uint32(0x7F7F7F7F)) | (drawn & np.uint32(0x80808080))
        return end


def is_lie(author: ClaimAuthor, place: ClaimPlace) -> bool:
    return author.plan.phases[place.phase].name == STEP and place.round >= FROM_ROUND
