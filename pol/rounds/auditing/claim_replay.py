"""Replays one claim of a training in rounds from what its sources have published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root, tensor_root
from pol.errors import OperationalError, PolError, ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.rounds.auditing.round_audit import Finding, Lie
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds, end_of_copy
from pol.rounds.plan.rounds_plan import Phase, RoundsPlan
from pol.rounds.round_claim import INITIAL, BoundSlot
from pol.training.storage.sealing import is_sealed
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.published_task import PROGRAM_LIMIT
from pol.training.task.task_source import GRAPH_LIMIT
from pol.verification.replay.canonical_replay import replay_end

MOST_REPLAYS = 64
"""Claims that are replayed for one whose sources are withheld."""


@dataclass(frozen=True)
class LoadedPhase:
    """The program of a phase and its names."""

    program: StepProgram
    names: ProgramNames


@lru_cache(maxsize=64)
def load_phase(store: Store, phase: Phase) -> LoadedPhase:
    """The program of a phase, checked against the plan."""
    program = StepProgram.from_bytes(store.get(phase.program, limit=PROGRAM_LIMIT))
    names = ProgramNames.from_dict(canonical_json.decode(store.get(phase.names, limit=GRAPH_LIMIT), "the names"))
    if program_hash(program) != phase.program_hash or len(names.slots) != len(program.slots):
        raise ProtocolError(f"the plan's objects of phase {phase.name} aren't what it says: leave this training alone")
    if len(phase.sources) != len(program.slots):
        raise ProtocolError(f"phase {phase.name} has {len(phase.sources)} sources for {len(program.slots)} slots")
    return LoadedPhase(program, names)


def load_constants(store: Store, phase: Phase, seat: int) -> list[Words]:
    """The constants of a phase for a seat, checked against the plan."""
    loaded, entry = load_phase(store, phase), phase.constants_of(seat)
    try:
        words = task_tensors.load(store, entry.object, loaded.names.constants, loaded.program.constants)
    except ProtocolError as error:
        if is_sealed(store.get(entry.object)):
            problem = (
                f"the data of seat {seat} for phase {phase.name} are sealed: read them by a SealedStore with a key"
            )
            raise OperationalError(problem) from error
        raise
    if constants_root(loaded.program.constants, words) != entry.root:
        raise ProtocolError(f"the constants of phase {phase.name}, seat {seat}, aren't what the plan says")
    return words


def phase_constants(rounds: LoggedRounds, entry: ClaimEntry) -> list[Words]:
    """The constants of the program of a claim."""
    roster = rounds.roster_of(entry)
    if roster is None:
        raise ProtocolError(f"the log has no roster for {entry.worker}'s claim of round {entry.claim.round}")
    seat = roster.members[roster.place(entry.worker)].seat
    return load_constants(rounds.store, rounds.plan.phase(entry.claim.phase), seat)


def load_initial(store: Store, plan: RoundsPlan) -> list[Words]:
    """The plan's initial values. Raises ProtocolError: they aren't what it says."""
    types = [value.type for value in plan.initial]
    words = task_tensors.load(store, plan.values, [value.name for value in plan.initial], types)
    for value, found in zip(plan.initial, words, strict=True):
        if tensor_root(value.type, found) != value.root:
            raise ProtocolError(f"the initial value {value.name} isn't what the plan says")
    return words


def load_end(rounds: LoggedRounds, entry: ClaimEntry) -> dict[int, Words]:
    """The slots of the end of a claim that its author's file holds.

    Raises:
        OperationalError: it is withheld, or isn't the claimed one.
    """
    return rounds.shown(entry, partial(_held_by, rounds))


def _held_by(rounds: LoggedRounds, entry: ClaimEntry) -> dict[int, Words]:
    if not entry.tensors:
        raise OperationalError(f"{entry.worker} hasn't published the end of its claim of round {entry.claim.round}")
    loaded, slots = load_phase(rounds.store, rounds.plan.phase(entry.claim.phase)), end_of_copy(rounds.store, entry)
    if len(slots) != len(loaded.program.slots):
        raise OperationalError(f"{entry.worker} has published {len(slots)} slots of {len(loaded.program.slots)}")
    held = [place for place, slot in enumerate(slots) if slot.is_held]
    types = [loaded.program.slots[place].type for place in held]
    names = [loaded.names.slots[place] for place in held]
    try:
        words = task_tensors.load(rounds.store, entry.tensors, names, types)
    except ProtocolError as error:
        raise OperationalError(f"{entry.worker} has published no end of its claim: {error}") from error
    for place, type_, found in zip(held, types, words, strict=True):
        if tensor_root(type_, found) != slots[place].root:
            raise OperationalError(f"{entry.worker} has published another end than the one of its claim")
    return dict(zip(held, words, strict=True))


def load_start(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory | None = None) -> list[Words]:
    """The state that a claim starts from, out of what the authors of its sources have published.

    With ``executors``, what they withhold is what a replay of their claims gives.

    Raises:
        OperationalError: something is withheld.
        FalseSourceError: what is withheld isn't what was claimed.
    """
    return _start(PublishedTensors(rounds, executors), rounds, entry)


def _start(tensors: PublishedTensors, rounds: LoggedRounds, entry: ClaimEntry) -> list[Words]:
    found = [tensors.of(source) for source in rounds.sources(entry)]
    types = [slot.type for slot in load_phase(rounds.store, rounds.plan.phase(entry.claim.phase)).program.slots]
    if state_root(types, found) != entry.claim.start:
        raise ProtocolError(f"the sources of {entry.worker}'s claim don't give the start that it claims")
    return found


def replay_claim(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> list[Words]:
    """The true end of a claim."""
    return _end(PublishedTensors(rounds, executors), rounds, entry, executors)


def _end(tensors: PublishedTensors, rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> list[Words]:
    claim, phase = entry.claim, rounds.plan.phase(entry.claim.phase)
    constants, program = phase_constants(rounds, entry), load_phase(rounds.store, phase).program
    start = _start(tensors, rounds, entry)
    return replay_end(program, executors(program, constants), start, claim.first_step, claim.steps)


def execution_finding(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> Finding | None:
    """The lie that a replay of a claim shows, if there is one."""
    return _wrong_end(rounds, entry, replay_claim(rounds, entry, executors))


def _wrong_end(rounds: LoggedRounds, entry: ClaimEntry, replayed: list[Words]) -> Finding | None:
    claim, phase = entry.claim, rounds.plan.phase(entry.claim.phase)
    end = state_root([slot.type for slot in load_phase(rounds.store, phase).program.slots], replayed)
    if end == claim.end:
        return None
    detail = f"claims the end {claim.end.hex()[:16]}, and {claim.steps} steps of its program give {end.hex()[:16]}"
    return Finding(Lie.EXECUTION, entry.worker, claim.round, phase.name, detail, claim.digest)


class FalseSourceError(OperationalError):
    """What a claim follows from is withheld, and isn't what was claimed: ``finding`` says whose lie that is."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"it follows from a false claim whose end is withheld: {finding}")
        self.finding = finding


class PublishedTensors:
    """Tensors by their source: a file is read once. With ``executors``, those that are withheld are replayed.

    Nobody needs to be asked for them: a claim's end follows from its sources, down to what was published, or to the
    plan. So who withholds one hides no lie in it, and none in what follows from it; it makes others replay more, at
    most ``MOST_REPLAYS`` claims.
    """

    def __init__(self, rounds: LoggedRounds, executors: ExecutorFactory | None = None) -> None:
        self._rounds, self._executors = rounds, executors
        self._replayed: dict[bytes, list[Words]] = {}
        self._initial: list[Words] = []
        self._files: dict[ClaimEntry, dict[int, Words] | OperationalError] = {}

    def of(self, source: BoundSlot) -> Words:
        """The tensor of a source; one that its claim has kept is that of the claim's own source.

        Raises:
            OperationalError: it is withheld.
        """
        if source.claim == INITIAL:
            return self._initial_value(source)
        entry = self._claim(source)
        try:
            return self._rounds.shown(entry, partial(self._by_copy, source))
        except OperationalError:
            if self._executors is None or len(self._replayed) >= MOST_REPLAYS:
                raise
            return self._by_replay(source, entry, self._executors)

    def _by_replay(self, source: BoundSlot, entry: ClaimEntry, executors: ExecutorFactory) -> Words:
        if source.claim not in self._replayed:
            self._replayed[source.claim] = []  # counts while those before it are replayed
            end = _end(self, self._rounds, entry, executors)
            if (finding := _wrong_end(self._rounds, entry, end)) is not None:
                raise FalseSourceError(finding)
            self._replayed[source.claim] = end
        end = self._replayed[source.claim]
        if source.slot >= len(end):
            raise OperationalError(f"{entry.worker}'s claim has no slot {source.slot}")
        return end[source.slot]

    def _by_copy(self, source: BoundSlot, entry: ClaimEntry) -> Words:
        """The tensor as one copy of the entry shows it: in its file, or in that of the source that it names."""
        end = end_of_copy(self._rounds.store, entry)
        if source.slot >= len(end) or end[source.slot].is_held:
            return self._in_file(source, entry)
        own = self._rounds.sources(entry)
        if source.slot >= len(own):
            raise OperationalError(f"{entry.worker} has published sources of {len(own)} slots, not {source.slot}")
        kept = own[source.slot]
        if kept.root != end[source.slot].root or kept.claim == source.claim:
            raise OperationalError(f"{entry.worker} withholds slot {source.slot} of its claim's end")
        if kept.claim == INITIAL:
            return self._initial_value(kept)
        return self._rounds.shown(self._claim(kept), partial(self._in_file, kept))

    def _in_file(self, source: BoundSlot, entry: ClaimEntry) -> Words:
        if entry not in self._files:
            try:
                self._files[entry] = _held_by(self._rounds, entry)
            except OperationalError as error:
                self._files[entry] = error
        file = self._files[entry]
        if isinstance(file, OperationalError):
            raise file
        if source.slot not in file:
            raise OperationalError(f"slot {source.slot} of claim {source.claim.hex()[:16]} wasn't published")
        return file[source.slot]

    def _claim(self, source: BoundSlot) -> ClaimEntry:
        entry = self._rounds.claims.get(source.claim)
        if entry is None:
            raise OperationalError(f"claim {source.claim.hex()[:16]} isn't in these rounds of the log")
        return entry

    def _initial_value(self, source: BoundSlot) -> Words:
        self._initial = self._initial or load_initial(self._rounds.store, self._rounds.plan)
        if source.slot >= len(self._initial):
            raise OperationalError(f"the plan has no initial value {source.slot}")
        return self._initial[source.slot]


def findings_by_replay(
    rounds: LoggedRounds, entries: Iterable[ClaimEntry], executors: ExecutorFactory
) -> Iterator[Finding]:
    """The lies that replays of these claims show; a claim that can't be replayed is `Lie.WITHHELD`."""
    for entry in entries:
        try:
            found = execution_finding(rounds, entry, executors)
        except FalseSourceError as error:
            found = error.finding
        except PolError as error:  # false by its roots, which `findings_by_roots` says; or withheld
            name = rounds.plan.phase_name(entry.claim.phase)
            found = Finding(Lie.WITHHELD, entry.worker, entry.claim.round, name, str(error), entry.claim.digest)
        if found is not None:
            yield found
