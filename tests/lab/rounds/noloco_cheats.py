"""Partners that somebody has chosen: a worker that mixes with itself, and a coordinator that pairs whom it likes."""

from __future__ import annotations

from dataclasses import replace

from pol.arithmetic.primitives import Words
from pol.decentralised.noloco import MIXED, with_drawn_partners
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Roster
from pol.rounds.round_claim import BoundSlot

LYING_ROUND = 1


class Loner(ClaimAuthor):
    """Mixes with its own message instead of its partner's."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        if self.plan.phases[place.phase].name != MIXED or place.round != LYING_ROUND:
            return super().start(place)
        roster = self.rosters[place.round]
        alone = tuple(range(len(roster.members)))
        self.rosters[place.round] = replace(roster, partners=alone)
        found = super().start(place)
        self.rosters[place.round] = roster
        return found


def with_chosen_partners(roster: Roster) -> Roster:
    """Drawn partners, but in one round members 0 and 1, or 1 and 2 if those were drawn."""
    drawn = with_drawn_partners(roster)
    if roster.round != LYING_ROUND:
        return drawn
    return replace(drawn, partners=(0, 2, 1) if drawn.partners == (1, 0, 2) else (1, 0, 2))
