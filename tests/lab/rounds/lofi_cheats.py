"""Lies in a training that ends with one mean: the base model sent back, another's model sent as one's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pol.arithmetic.primitives import Words
from pol.decentralised.lofi import TUNED
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_constants, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace
from pol.verification.replay.canonical_replay import replay_end


class BaseSender(ClaimAuthor):
    """Hasn't trained at all."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if self.plan.phases[place.phase].name == TUNED:
            return list(start)
        return super().run(place, start, first_step, steps)


class Copycat(ClaimAuthor):
    """Signs the model of the first seat."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        phase = self.plan.phases[place.phase]
        if phase.name != TUNED:
            return super().run(place, start, first_step, steps)
        program, constants = load_phase(self.store, phase).program, load_constants(self.store, phase, 0)
        executor = partial(CpuExecutor, threads=1)(program, constants)
        return replay_end(program, executor, start, first_step, steps)
