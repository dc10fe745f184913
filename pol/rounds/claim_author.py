"""A worker's side of its claims: assembles a start, runs a phase, publishes its end, signs (docs/spec/rounds.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import ListTag, list_root, tensor_roots
from pol.errors import ProtocolError
from pol.execution.executor import Executor, ExecutorFactory
from pol.rounds.auditing.claim_replay import load_constants, load_initial, load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace, RequiredSource, required_sources
from pol.rounds.roster import Roster
from pol.rounds.round_claim import (
    INITIAL,
    BoundSlot,
    EndSlot,
    RoundClaim,
    decode_sources,
    encode_end,
    encode_sources,
    sources_root,
    start_of,
)
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.verification.replay.canonical_replay import replay_every


@dataclass(frozen=True)
class MadeClaim:
    """A claim with what it commits to: the slots of its end, and the words of those that are known."""

    entry: ClaimEntry
    end: tuple[EndSlot, ...]
    words: Mapping[int, Words]


Recall: TypeAlias = Callable[[ClaimPlace], MadeClaim | None]
"""The claim at a place with its words, if it can be found."""


class ClaimAuthor:
    """Makes the claims of one worker. ``known`` holds its own claims, and those that it has received, by place.

    ``publishes`` says of which phases the ends are stored; those of others are kept by their root alone. Constants are
    read from ``vault``, if there is one: a `SealedStore` with this worker's key.
    """

    def __init__(
        self,
        store: Store,
        plan: RoundsPlan,
        key: WorkerKey,
        executors: ExecutorFactory,
        publishes: bool = True,
        vault: Store | None = None,
    ) -> None:
        self.store, self.plan, self.key = store, plan, key
        self.vault = vault or store
        self._executors, self._publishes = executors, publishes
        self._ready: dict[tuple[int, int], Executor] = {}
        self._initial: list[Words] | None = None
        self.known: dict[ClaimPlace, MadeClaim] = {}
        self.rosters: dict[int, Roster] = {}
        self.recall: Recall = lambda place: None
        """Finds claims of rounds before a restart."""

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.key.name

    def learn(self, claim: MadeClaim) -> None:
        """Take in a claim of another worker, whose signature and words have been checked."""
        self.known[ClaimPlace(claim.entry.worker, *claim.entry.claim.place)] = claim

    def forget(self, before: int) -> None:
        """Let go of claims of rounds before a round."""
        self.known = {place: claim for place, claim in self.known.items() if place.round >= before}
        self.rosters = {round_: roster for round_, roster in self.rosters.items() if round_ >= before}

    def claim(self, place: ClaimPlace) -> MadeClaim | None:
        """The claim at a place, if it is known, or can be found after a restart."""
        if place not in self.known and (found := self.recall(place)) is not None:
            self.known[place] = found
        return self.known.get(place)

    def make(self, round_: int, phase: str, part: int = 0) -> MadeClaim:
        """Run a phase from the sources that the plan gives, and sign the claim.

        Raises:
            ProtocolError: a source isn't known, or the plan has no such phase.
        """
        roster = self.rosters[round_]
        place = ClaimPlace(self.name, round_, self.plan.phase_index(phase, len(roster.members)), part)
        sources, start = self.start(place)
        own = self.plan.phases[place.phase]
        end = self.run(place, start, own.first_step(round_, part), own.steps)
        return self.sign(place, sources, end)

    def start(self, place: ClaimPlace) -> tuple[list[BoundSlot], list[Words]]:
        """The sources of a claim and the state that they give. Raises ProtocolError: a source isn't known."""
        required = required_sources(self.plan, self.rosters[place.round], self.rosters.get(place.round - 1), place)
        bound = [self._bound(rule) for rule in required]
        return [source for source, _ in bound], [words for _, words in bound]

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end of a phase's program."""
        executor = self._executor(place)
        loaded = load_phase(self.store, self.plan.phases[place.phase])
        return next(replay_every(loaded.program, executor, start, first_step, steps, steps))

    def sign(self, place: ClaimPlace, sources: Sequence[BoundSlot], end: Sequence[Words]) -> MadeClaim:
        """The signed claim of an end, which is published."""
        phase, roster = self.plan.phases[place.phase], self.rosters[place.round]
        loaded = load_phase(self.store, phase)
        types = [slot.type for slot in loaded.program.slots]
        roots = tensor_roots(types, end)
        slots = [EndSlot(root, self._is_held(root, source)) for root, source in zip(roots, sources, strict=True)]
        seat = roster.members[roster.place(self.name)].seat
        claim = RoundClaim(
            self.plan.digest,
            self.name,
            place.round,
            place.phase,
            place.part,
            roster.document,
            phase.program_hash,
            phase.constants_of(seat).root,
            phase.first_step(place.round, place.part),
            phase.steps,
            start_of(sources),
            list_root(ListTag.STATE, roots),
            sources_root(sources),
        )
        held = [number for number, slot in enumerate(slots) if slot.is_held]
        tensors = ""
        if self._publishes:
            names, kinds = [loaded.names.slots[number] for number in held], [types[number] for number in held]
            pieces = task_tensors.pieces(names, kinds, [end[number] for number in held])
            tensors = self.store.put_pieces(pieces)
        signature = self.key.sign(claim.digest)
        published = (self.store.put(encode_sources(sources)), self.store.put(encode_end(slots)), tensors)
        made = MadeClaim(ClaimEntry(claim, signature, *published), tuple(slots), dict(enumerate(end)))
        self.known[place] = made
        return made

    def named(self, made: MadeClaim) -> list[ClaimEntry]:
        """The claims of others that one of this worker's goes on from, as they came: it answers for them."""
        sources = {source.claim for source in decode_sources(self.store.get(made.entry.sources))}
        given = (each for each in self.known.values() if each.entry.worker != self.name)
        found = [each for each in given if each.entry.claim.digest in sources]
        return [replace(each.entry, roots=self.store.put(encode_end(each.end))) for each in found]

    def _is_held(self, root: bytes, source: BoundSlot) -> bool:
        """Whether the file of a claim holds a slot: all but those that it keeps from a claim whose file has them."""
        if root != source.root:
            return True
        if source.claim == INITIAL:
            return False
        given = next(claim for claim in self.known.values() if claim.entry.claim.digest == source.claim)
        return not given.end[source.slot].is_held

    def _executor(self, place: ClaimPlace) -> Executor:
        roster = self.rosters[place.round]
        seat = roster.members[roster.place(self.name)].seat
        if (place.phase, seat) not in self._ready:
            phase = self.plan.phases[place.phase]
            constants = load_constants(self.vault, phase, seat)
            self._ready[place.phase, seat] = self._executors(load_phase(self.store, phase).program, constants)
        return self._ready[place.phase, seat]

    def _bound(self, rule: RequiredSource) -> tuple[BoundSlot, Words]:
        if rule.place is None:
            self._initial = self._initial or load_initial(self.store, self.plan)
            return BoundSlot(INITIAL, rule.slot, self.plan.initial[rule.slot].root), self._initial[rule.slot]
        claim = self.claim(rule.place)
        if claim is None:
            phase = self.plan.phases[rule.place.phase].name
            raise ProtocolError(
                f"the claim of {rule.place.worker} for {phase} of round {rule.place.round} hasn't come: ask for it, or "
                "go on with a roster without its author"
            )
        if rule.slot not in claim.words:
            raise ProtocolError(f"the message of {rule.place.worker} came without slot {rule.slot}: ask for it")
        return BoundSlot(claim.entry.claim.digest, rule.slot, claim.end[rule.slot].root), claim.words[rule.slot]
