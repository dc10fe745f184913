"""Workers that die in mid-round, workers that lie, and coordinators that do: for elastic trainings."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log_entries import RosterEntry
from pol.rounds.roster import Member, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot
from pol.rounds.source_rules import ClaimPlace


class DiesAfterItsWork(ClaimAuthor):
    """Is killed in round 1, between its work, which it has signed, and its message."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round == 1 and self.plan.phases[place.phase].name == "message":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(place, start, first_step, steps)


class DiesInRoundTwo(ClaimAuthor):
    """Is killed in round 2, within its work."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(place, start, first_step, steps)


class Sandbagger(ClaimAuthor):
    """Does two fifths of its steps in round 1, goes on in the same direction, and adds a little noise."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if self.plan.phases[place.phase].name != "local" or place.round != 1:
            return super().run(place, start, first_step, steps)
        done = steps * 2 // 5
        end = super().run(place, start, first_step, done)
        noise = np.random.default_rng(0)
        return [_extrapolated(before, after, steps / done, noise) for before, after in zip(start, end, strict=True)]


class Magnifier(ClaimAuthor):
    """Sends ten times its pseudo-gradient in round 1."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == "message" and place.round == 1:
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end


class IdleJoiner(ClaimAuthor):
    """Joins without having loaded the weights: it begins with those of the plan."""

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        sources, words = super().start(place)
        if self.plan.phases[place.phase].name != "local":
            return sources, words
        first = self.rosters[place.round].members
        if first[self.rosters[place.round].place(self.name)].joined != place.round:
            return sources, words
        loaded = self._initial_values()
        for slot, rule in enumerate(self.plan.phases[place.phase].sources):
            sources[slot] = BoundSlot(INITIAL, rule.initial, self.plan.initial[rule.initial].root)
            words[slot] = loaded[rule.initial]
        return sources, words

    def _initial_values(self) -> list[Words]:
        from pol.rounds.claim_replay import load_initial

        return load_initial(self.store, self.plan)


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


def _extrapolated(before: Words, after: Words, times: float, noise: np.random.Generator) -> Words:
    start, end = before.view(np.float32), after.view(np.float32)
    moved = start + (end - start) * np.float32(times)
    return (moved * (1 + 1e-3 * noise.standard_normal(moved.shape))).astype(np.float32).view(np.uint32)
