"""Lies that only trainings with changing members have: of a joiner, of a worker, of coordinators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pol.arithmetic.primitives import Words
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.rounds.auditing.claim_replay import load_initial
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Member, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot


class IdleJoiner(ClaimAuthor):
    """Joins without having loaded the weights: it begins with those of the plan."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if self.plan.phases[place.phase].name != "local":
            return sources, words
        roster = self.rosters[place.round]
        if roster.members[roster.place(self.name)].joined != place.round:
            return sources, words
        loaded = load_initial(self.store, self.plan)
        for slot, rule in enumerate(self.plan.phases[place.phase].sources):
            sources[slot] = BoundSlot(INITIAL, rule.initial, self.plan.initial[rule.initial].root)
            words[slot] = loaded[rule.initial]
        return sources, words


class Equivocator(ElasticWorker):
    """Shows one message to its peers, and hands in another one."""

    def share(self, made: MadeClaim, slots: Sequence[str]) -> list[MadeClaim]:
        found = super().share(made, slots)
        if self.round == 1:
            claim = replace(made.entry.claim, end=bytes([1]) * 32)
            self.hand_in(replace(made.entry, claim=claim, signature=self.author.key.sign(claim.digest)))
        return found


class Forgetful(RosterCoordinator):
    """Leaves out, in round 1, the last member, whose message it has acknowledged."""

    def _final_members(self, begun: Roster) -> tuple[Member, ...]:
        members = super()._final_members(begun)
        return members[:-1] if begun.round == 1 else members


class TwoFaced(RosterCoordinator):
    """Signs two final rosters of round 1."""

    def end_round(self) -> RosterEntry:
        entry, roster = super().end_round(), self.roster
        if roster is not None and roster.round == 1:
            self._sign(replace(roster, members=roster.members[:-1]))
            self.roster = roster
        return entry
