"""Lies of a data owner about DP-SGD: noise that was drawn before, no noise, another clipping norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.private_step import PRIVATE
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_constants, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace
from pol.verification.replay.canonical_replay import replay_every

REPLAYED, NO_NOISE, OTHER_CLIP = 1, 2, 3
"""Rounds in which the owner lies."""
_CHANGED = {NO_NOISE: ("noise", 0.0), OTHER_CLIP: ("clip", 100.0)}


class CarelessOwner(ClaimAuthor):
    """An owner that saves privacy, or keeps less of it than it says."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        phase = self.plan.phases[place.phase]
        if phase.name != PRIVATE or place.round == 0:
            return super().run(place, start, first_step, steps)
        if place.round == REPLAYED:
            return super().run(place, start, 0, steps)  # the batches and the noise of round 0
        loaded = load_phase(self.store, phase)
        seat = self.rosters[place.round].members[self.rosters[place.round].place(self.name)].seat
        constants = load_constants(self.vault, phase, seat)
        name, value = _CHANGED[place.round]
        at = loaded.names.constants.index(name)
        constants[at] = np.full_like(constants[at], np.float32(value).view(np.uint32))
        executor = CpuExecutor(loaded.program, constants, threads=1)
        return next(replay_every(loaded.program, executor, start, first_step, steps, steps))
