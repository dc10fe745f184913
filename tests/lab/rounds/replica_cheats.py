"""Lies in trainings of equal models: about messages, arrivals, partners, rosters and private data."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.arrival_server import ArrivalServer
from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE
from pol.decentralised.distro import STEP
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.decentralised.lofi import TUNED
from pol.decentralised.noloco import MIXED, with_drawn_partners
from pol.decentralised.private_step import PRIVATE
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_constants, load_initial, load_phase
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Arrival, Member, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot
from pol.verification.replay.canonical_replay import replay_end, replay_every

LYING_ROUND = 1


class Shouting(ClaimAuthor):
    """Sends ten times its pseudo-gradient."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == MESSAGE and self.lies_in(place.round):
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end

    def lies_in(self, round_: int) -> bool:
        """In every round."""
        return True


class Magnifier(Shouting):
    """Does so in one round."""

    def lies_in(self, round_: int) -> bool:
        """In round 1."""
        return round_ == LYING_ROUND


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


FROM_ROUND = 1


class Repeater(ClaimAuthor):
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
