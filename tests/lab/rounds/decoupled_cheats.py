"""Lies about arrivals, by the server, and workers of different speed."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.arrival_server import ArrivalServer
from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Arrival
from pol.rounds.round_claim import BoundSlot

REORDERED, OMITTED, STALE = 3, 4, 5
"""Rounds in which the server lies."""


class LyingServer(ArrivalServer):
    """Turns the order of two arrivals around; leaves one out, and takes another a second time."""

    def choose(self, queue: Sequence[Arrival]) -> tuple[Arrival, ...]:
        if self._round == REORDERED:
            return queue[1], queue[0]
        if self._round == OMITTED:
            again = self.author.rosters[REORDERED].arrivals
            return queue[0], next(arrival for arrival in again if arrival != queue[0])
        return tuple(queue)


class StaleMerge(ClaimAuthor):
    """Merges the message that a worker has sent before, in the place of the one that its roster names."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if self.plan.phases[place.phase].name == MERGE and place.round == STALE:
            named = self.known[self._by_digest(sources[-1].claim)]
            older = next(
                at
                for at, made in self.known.items()
                if self.plan.phases[at.phase].name == MESSAGE and made.entry.claim.digest != named.entry.claim.digest
            )
            made = self.known[older]
            for back in (1, 2):
                slot = sources[-back].slot
                sources[-back] = BoundSlot(made.entry.claim.digest, slot, made.end[slot].root)
                words[-back] = made.words[slot]
        return sources, words

    def _by_digest(self, digest: bytes) -> ClaimPlace:
        return next(place for place, made in self.known.items() if made.entry.claim.digest == digest)


class Slow(ClaimAuthor):
    """An honest worker on a slow machine."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if self.plan.phases[place.phase].name == LOCAL:
            time.sleep(0.2)
        return super().run(place, start, first_step, steps)


class Shouting(ClaimAuthor):
    """Sends ten times its pseudo-gradient."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == MESSAGE:
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end
