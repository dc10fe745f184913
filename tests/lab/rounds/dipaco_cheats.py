"""Paths of DiPaCo that lie about the documents that they train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import tensor_root
from pol.decentralised.dipaco import SHARD, local
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.message import slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.round_claim import BoundSlot

LYING_ROUND = 1


class ShardLiar(ClaimAuthor):
    """Knows the numbers of slots, and which phase a claim is of."""

    def is_of(self, place: ClaimPlace, *phases: str) -> bool:
        """Whether a claim is one to lie about."""
        return place.round == LYING_ROUND and self.plan.phases[place.phase].name in phases

    def slot(self, place: ClaimPlace, name: str) -> int:
        """The number of a slot."""
        return slots_of(load_phase(self.store, self.plan.phases[place.phase]).names, [name])[0]


class EasierShard(ShardLiar):
    """Trains on one document again and again, and claims to have trained on its shard."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if not self.is_of(place, *map(local, range(4))):
            return super().run(place, start, first_step, steps)
        at, altered = self.slot(place, "rows"), list(start)
        altered[at] = one_document(start[at])
        end = super().run(place, altered, first_step, steps)
        end[at] = start[at]
        return end


class FalseRouting(ShardLiar):
    """Claims that the router gives it this one document only."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.is_of(place, SHARD):
            at = self.slot(place, "rows")
            end[at] = one_document(end[at])
        return end


class OwnShard(ShardLiar):
    """Routes as it should, and starts its training from other rows than those that it has signed."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if self.is_of(place, *map(local, range(4))):
            at = self.slot(place, "rows")
            type_ = load_phase(self.store, self.plan.phases[place.phase]).program.slots[at].type
            words[at] = one_document(words[at])
            sources[at] = replace(sources[at], root=tensor_root(type_, words[at]))
        return sources, words


def one_document(rows: Words) -> Words:
    """The first of some rows, in all places."""
    return np.broadcast_to(rows[:1], rows.shape).copy()
