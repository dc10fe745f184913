"""What a training in rounds shows to anybody: lies that roots reveal, and claims that a replay refutes.

docs/spec/rounds.md, "Claim": a claim is false by its roots, or by its execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pol.errors import OperationalError, ProtocolError
from pol.rounds.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, require_author
from pol.rounds.roster import Roster, require_drawn
from pol.rounds.round_claim import (
    INITIAL,
    SOURCE_SIZE,
    BoundSlot,
    EndSlot,
    decode_end,
    decode_sources,
    sources_root,
    start_of,
)
from pol.rounds.rounds_log import LogHead, read_entries, rosters_of
from pol.rounds.rounds_plan import RoundsPlan
from pol.rounds.source_rules import ClaimPlace, RequiredSource, required_sources
from pol.training.storage.store import Store

ROOTS_LIMIT = 1 << 26


class Lie(Enum):
    """What is wrong with a claim, or with the keeping of the log."""

    SIGNATURE = "signature"
    EQUIVOCATION = "equivocation"
    ROSTER = "roster"
    PHASE = "phase"
    SOURCE = "source"
    START = "start"
    EXECUTION = "execution"
    OMISSION = "omission"
    WITHHELD = "withheld"
    """No lie, but what was published can't be read: nobody is blamed for it by this alone."""


@dataclass(frozen=True)
class Finding:
    """A lie and the one key that is to blame for it."""

    lie: Lie
    worker: str
    round: int
    phase: str
    detail: str
    claim: bytes = INITIAL
    against: bytes = INITIAL
    """The other claim of an equivocation."""

    def __str__(self) -> str:
        return f"round {self.round}, {self.phase}: {self.worker}: {self.detail}"


@dataclass(frozen=True)
class LoggedRounds:
    """Entries of some rounds with the rosters, as `read_rounds` gives them."""

    plan: RoundsPlan
    store: Store
    entries: Sequence[LogEntry]
    rosters: Mapping[int, Sequence[Roster]]
    """By round; more than one is an equivocation of the coordinator."""
    claims: Mapping[bytes, ClaimEntry]
    places: Mapping[ClaimPlace, ClaimEntry]
    is_whole: bool = True
    """Whether all rounds were read: only then is an entry missing that isn't there."""

    def end(self, entry: ClaimEntry) -> list[EndSlot]:
        """The slots of the end of a claim.

        Raises:
            OperationalError: the store failed, or the object isn't that of the claim's end: as good as withheld.
        """
        try:
            return decode_end(self.store.get(entry.roots, limit=ROOTS_LIMIT), entry.claim.end)
        except ProtocolError as error:
            raise OperationalError(f"{entry.worker} has published no roots of its claim's end: {error}") from error

    def sources(self, entry: ClaimEntry) -> list[BoundSlot]:
        """The sources of a claim.

        Raises:
            OperationalError: the store failed, or the object isn't what the claim commits to: as good as withheld.
        """
        data = self.store.get(entry.sources, limit=ROOTS_LIMIT)
        sources = decode_sources(data) if data and not len(data) % SOURCE_SIZE else []
        if sources and sources_root(sources) == entry.claim.sources:
            return sources
        raise OperationalError(f"the sources that {entry.worker} has published aren't those of its claim")

    def roster_of(self, entry: ClaimEntry) -> Roster | None:
        """The roster that a claim names, if the log has it."""
        named = (roster for roster in self.rosters.get(entry.claim.round, ()) if roster.document == entry.claim.roster)
        return next(named, None)

    def before(self, round_: int) -> Roster | None:
        """The roster of the round before."""
        return next(iter(self.rosters.get(round_ - 1, ())), None)


def read_rounds(store: Store, plan: RoundsPlan, head: LogHead, first: int = 0, last: int | None = None) -> LoggedRounds:
    """The entries of the rounds ``first`` .. ``last`` and of the one before.

    Raises:
        ProtocolError: a page or a roster is malformed.
        OperationalError: the store failed.
    """
    entries = list(read_entries(store, head, max(0, first - 1), last))
    rosters: dict[int, list[Roster]] = {}
    for roster in rosters_of(store, plan, entries):
        rosters.setdefault(roster.round, []).append(roster)
    claims: dict[bytes, ClaimEntry] = {}
    places: dict[ClaimPlace, ClaimEntry] = {}
    for entry in entries:
        if isinstance(entry, ClaimEntry) and entry.claim.plan == plan.digest:
            claims[entry.claim.digest] = entry
            places.setdefault(ClaimPlace(entry.worker, *entry.claim.place), entry)
    return LoggedRounds(plan, store, entries, rosters, claims, places, first == 0 and last is None)


def findings_by_roots(rounds: LoggedRounds, first: int = 0, last: int | None = None) -> Iterator[Finding]:
    """The lies that signatures, rosters and roots show, without data: in the order of the log."""
    coordinator, used = rounds.plan.coordinator, set[bytes]()
    for round_, (roster, *others) in sorted(rounds.rosters.items()):
        if others:
            yield Finding(Lie.EQUIVOCATION, coordinator, round_, "roster", "has signed two rosters of one round")
        try:
            require_drawn(roster, used)
        except ProtocolError as error:
            yield Finding(Lie.ROSTER, coordinator, round_, "roster", str(error))
        used.add(roster.beacon)
    for entry in rounds.entries:
        if isinstance(entry, RosterEntry):
            continue
        round_ = entry.claim.round if isinstance(entry, ClaimEntry) else entry.round
        if round_ < first or (last is not None and round_ > last):
            continue
        try:
            require_author(entry)
        except ProtocolError as error:
            # Nobody has signed it, so nobody but the keeper, which has let it in, is to blame.
            yield Finding(Lie.SIGNATURE, coordinator, round_, "log", str(error))
            continue
        if isinstance(entry, ClaimEntry):
            try:
                yield from claim_findings(rounds, entry)
            except OperationalError as error:
                name = _phase_name(rounds.plan, entry)
                yield Finding(Lie.WITHHELD, entry.worker, round_, name, str(error), entry.claim.digest)
        if isinstance(entry, DeliveryEntry) and entry.claim not in rounds.claims:
            # Only its keeper can leave anything out of the log; a receiver could have made up what it acknowledges.
            is_keeper = entry.receiver == coordinator and rounds.is_whole
            problem = f"has acknowledged claim {entry.claim.hex()[:16]}, and the log doesn't have it"
            lie = Lie.OMISSION if is_keeper else Lie.WITHHELD
            yield Finding(lie, entry.receiver, round_, "log", problem, entry.claim)


def claim_findings(rounds: LoggedRounds, entry: ClaimEntry) -> list[Finding]:
    """The first lie that roots show of one claim, if there is one; its signature has been checked.

    Raises:
        OperationalError: what its author, or that of a source, has published can't be read.
    """
    claim, plan = entry.claim, rounds.plan
    name = _phase_name(plan, entry)

    def found(lie: Lie, detail: str, against: bytes = INITIAL) -> list[Finding]:
        return [Finding(lie, entry.worker, claim.round, name, detail, claim.digest, against)]

    other = rounds.places[ClaimPlace(entry.worker, *claim.place)]
    if other.claim != claim:
        return found(Lie.EQUIVOCATION, "has signed two claims for one place", other.claim.digest)
    roster, before = rounds.roster_of(entry), rounds.before(claim.round)
    if roster is None:
        raise OperationalError("its roster isn't in this log: its author has to show one that the coordinator signed")
    if claim.round and before is None:
        raise OperationalError(f"the roster of round {claim.round - 1} isn't in this log: ask its keeper")
    try:
        member = roster.members[roster.place(entry.worker)]
        place = ClaimPlace(entry.worker, *claim.place)
        required = required_sources(plan, roster, before, place)
        phase, constants = plan.phases[claim.phase], plan.phases[claim.phase].constants_of(member.seat)
    except ProtocolError as error:
        return found(Lie.PHASE, f"makes a claim that the plan has no place for: {error}")
    expected = (phase.program_hash, constants.root, phase.first_step(claim.round, claim.part), phase.steps)
    if (claim.program, claim.constants, claim.first_step, claim.steps) != expected:
        return found(Lie.PHASE, "has run another program, other data or other steps than the plan has")
    sources = rounds.sources(entry)
    if len(sources) != len(required):
        return found(Lie.SOURCE, f"names {len(sources)} sources for {len(required)} slots")
    for slot, (source, rule) in enumerate(zip(sources, required, strict=True)):
        if problem := _wrong_source(rounds, source, rule):
            return found(Lie.SOURCE, f"slot {slot} {problem}")
    if start_of(sources) != claim.start:
        return found(Lie.START, "starts from another state than the one that its sources give")
    return []


def _wrong_source(rounds: LoggedRounds, source: BoundSlot, rule: RequiredSource) -> str:
    """What is wrong with a source, in a few words; empty if nothing is."""
    if rule.place is None:
        if source.claim != INITIAL or source.slot != rule.slot:
            return "has its initial value in the plan, and another source was named"
        return "" if source.root == rounds.plan.initial[rule.slot].root else "hasn't the plan's initial value"
    entry = rounds.claims.get(source.claim)
    if entry is None:  # its author, or the keeper, may have kept it out: whoever has bound to it can show it
        where_else = "its author has to show it" if rounds.is_whole else "read all of the log"
        raise OperationalError(f"a source, claim {source.claim.hex()[:16]}, isn't in this log: {where_else}")
    where = ClaimPlace(entry.worker, *entry.claim.place)
    if where != rule.place or source.slot != rule.slot:
        return f"comes from {entry.worker}, round {where.round}; the plan's rule gives {rule.place.worker}"
    end = rounds.end(entry)
    if source.slot >= len(end) or end[source.slot].root != source.root:
        return f"isn't the tensor that {entry.worker} has signed"
    return ""


def _phase_name(plan: RoundsPlan, entry: ClaimEntry) -> str:
    phase = entry.claim.phase
    return plan.phases[phase].name if phase < len(plan.phases) else f"phase {phase}"
