"""Workers that restore something else than the state of the round before, when another one has failed."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.decentralised.pipelines.pipeline import HEAD, STATE, forward, update
from pol.rounds.auditing.claim_replay import load_initial, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.message import slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.round_claim import INITIAL, BoundSlot

FAILED_ROUND = 2


class OlderWeights(ClaimAuthor):
    """Restores the plan's initial weights after the failure, and says so: its sources name them."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if place.round == FAILED_ROUND and self.plan.phases[place.phase].name == forward(0):
            at = slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, ["weights"])[0]
            number = self.plan.phases[place.phase].sources[at].initial
            sources[at] = BoundSlot(INITIAL, number, self.plan.initial[number].root)
            words[at] = load_initial(self.store, self.plan)[number]
        return sources, words


class SilentlyOlderWeights(ClaimAuthor):
    """Runs the last stage with the plan's initial weights after the failure, and claims the right start."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round != FAILED_ROUND or self.plan.phases[place.phase].name != HEAD:
            return super().run(place, start, first_step, steps)
        at = slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, ["weights"])[0]
        altered = list(start)
        altered[at] = load_initial(self.store, self.plan)[self.plan.phases[place.phase].sources[at].initial]
        end = super().run(place, altered, first_step, steps)
        end[at] = start[at]
        return end


class NeighborCopier(ClaimAuthor):
    """Recovers a lost stage as its left neighbor's blocks, where the plan says the mean of both."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        phase = self.plan.phases[place.phase]
        if phase.name == update(1) and phase.members == 2:
            names = load_phase(self.store, phase).names
            weights, left = slots_of(names, [STATE[0], "left"])
            end[weights] = start[left][: end[weights].size].copy()
        return end
