"""A lie of a DiLoCo worker beside the demo's: a pseudo-gradient made greater, in round 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import MESSAGE
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace

LYING_ROUND = 1


class Magnifier(ClaimAuthor):
    """Sends ten times its pseudo-gradient."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == MESSAGE and place.round == LYING_ROUND:
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end
