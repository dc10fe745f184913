"""What a training in rounds shows to anybody: lies that roots reveal, and claims that a replay refutes.

docs/spec/rounds.md, "Claim": a claim is false by its roots, or by its execution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.roster_rules import are_two_of_a_kind, final_of, left_out, needs_final, unasked, wrong_final
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, RosterEntry
from pol.rounds.log.logged_rounds import LoggedRounds, is_signed
from pol.rounds.plan.source_rules import ClaimPlace, RequiredSource, required_sources
from pol.rounds.roster import Roster, require_drawn
from pol.rounds.round_claim import INITIAL, BoundSlot, start_of


@dataclass(frozen=True)
class ArrivalProblem:
    """What is wrong with the arrivals of a round; ``is_left_out``: no round has taken the claim."""

    round: int
    claim: bytes
    is_left_out: bool
    detail: str


def arrival_problems(
    rosters: Mapping[int, Roster], receipts: Sequence[DeliveryEntry], claims: Mapping[bytes, ClaimEntry]
) -> Iterator[ArrivalProblem]:
    """The first problem of each round that takes arrivals.

    ``receipts`` are the coordinator's, in the order of the log: each says which round is to take the claim.
    Receipts for rounds that haven't begun, and rosters without arrivals, show nothing.
    """
    promised: dict[int, list[bytes]] = {}
    for receipt in receipts:
        promised.setdefault(receipt.round, []).append(receipt.claim)
    taken = {
        round_: [(roster.members[arrival.member].worker, arrival.round) for arrival in roster.arrivals]
        for round_, roster in rosters.items()
    }
    rounds_of: dict[tuple[str, int], int] = {}
    for round_, arrivals in sorted(taken.items()):
        if not arrivals:
            continue
        twice = [arrival for arrival in arrivals if arrival in rounds_of]
        rounds_of |= dict.fromkeys(arrivals, round_)
        known = [digest for digest in promised.get(round_, []) if digest in claims]
        expected = [(claims[digest].worker, claims[digest].claim.round) for digest in known]
        missing = [digest for digest, arrival in zip(known, expected, strict=True) if arrival not in arrivals]
        if missing:
            elsewhere = [other for other in taken.values() if _arrival(claims[missing[0]]) in other]
            name = missing[0].hex()[:16]
            problem = "takes it in another round" if elsewhere else "no round takes it"
            detail = f"has acknowledged claim {name} as an arrival of round {round_}, and {problem}"
            yield ArrivalProblem(round_, missing[0], not elsewhere, detail)
        elif expected != arrivals or twice:
            detail = f"takes {len(arrivals)} arrivals, and its receipts give others, or another order"
            yield ArrivalProblem(round_, known[0] if known else bytes(32), False, detail)


def _arrival(entry: ClaimEntry) -> tuple[str, int]:
    return entry.worker, entry.claim.round


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
    ORDER = "order"
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


def findings_by_roots(
    rounds: LoggedRounds,
    first: int = 0,
    last: int | None = None,
    receipts: Sequence[DeliveryEntry] = (),
    known: set[bytes] | None = None,
) -> Iterator[Finding]:
    """The lies that signatures, rosters and roots show, without data: in the order of the log.

    ``receipts`` are some that senders hold, whether the log has them or not. ``known`` are claims and rosters that were
    right before, and stay so however the log grows: those that are found to be right are added.
    """
    coordinator, known = rounds.plan.coordinator, set() if known is None else known
    yield from _roster_findings(rounds, first, known)
    held = [receipt for receipt in receipts if is_signed(receipt)]  # anybody can make one up
    for entry in [*rounds.entries, *held]:
        if isinstance(entry, RosterEntry) or (isinstance(entry, ClaimEntry) and _is_known(rounds, entry, known)):
            continue
        said = entry.claim if isinstance(entry, ClaimEntry) else entry
        round_ = said.round
        if said.plan != rounds.plan.digest:  # of another training, whoever has let it in
            continue
        if round_ < first or (last is not None and round_ > last):
            continue
        if not is_signed(entry):
            # Nobody but the keeper, which has let it in, is to blame.
            yield Finding(Lie.SIGNATURE, coordinator, round_, "log", "has an entry that its author hasn't signed")
            continue
        if isinstance(entry, ClaimEntry) and rounds.claims.get(entry.claim.digest, entry) == entry:
            try:
                found = claim_findings(rounds, entry)
                known.update(() if found else (entry.claim.digest,))
                yield from found
            except OperationalError as error:
                name = rounds.plan.phase_name(entry.claim.phase)
                yield Finding(Lie.WITHHELD, entry.worker, round_, name, str(error), entry.claim.digest)
        if isinstance(entry, DeliveryEntry) and entry.claim in rounds.claims:
            if entry.receiver == coordinator and (problem := _broken_promise(rounds, entry)):
                yield Finding(Lie.OMISSION, coordinator, round_, "roster", problem, entry.claim)
        elif isinstance(entry, DeliveryEntry):
            # Only its keeper can leave anything out of the log; a receiver could have made up what it acknowledges.
            is_keeper = entry.receiver == coordinator and rounds.is_whole
            problem = f"has acknowledged claim {entry.claim.hex()[:16]}, and the log doesn't have it"
            lie = Lie.OMISSION if is_keeper else Lie.WITHHELD
            yield Finding(lie, entry.receiver, round_, "log", problem, entry.claim)
    yield from _arrival_findings(rounds, first, last, held)


def _is_known(rounds: LoggedRounds, entry: ClaimEntry, known: Collection[bytes]) -> bool:
    """Whether this is the first entry of a claim that was right before; others may have another signature."""
    return entry.claim.digest in known and rounds.claims.get(entry.claim.digest) is entry


def _broken_promise(rounds: LoggedRounds, receipt: DeliveryEntry) -> str:
    """What the coordinator has left out against its receipt of a claim that the log has; empty if nothing is."""
    entry = rounds.claims[receipt.claim]
    if left_out(rounds.rosters.get(receipt.round, ()), entry.worker):
        return f"has acknowledged the message of {entry.worker}, and the final roster is without it"
    try:
        sources = rounds.sources(entry) if rounds.is_whole else []
    except OperationalError:  # which its author withholds
        return ""
    missing = [source.claim for source in sources if source.claim != INITIAL and source.claim not in rounds.claims]
    if not missing:
        return ""
    return f"has acknowledged claim {receipt.claim.hex()[:16]}, and left out {missing[0].hex()[:16]}, its source"


def _arrival_findings(
    rounds: LoggedRounds, first: int, last: int | None, held: Sequence[DeliveryEntry]
) -> Iterator[Finding]:
    """The coordinator's lies about arrivals; only the whole log has all receipts, in their order."""
    if not rounds.is_whole:
        return
    coordinator = rounds.plan.coordinator
    entries = [*rounds.entries, *(receipt for receipt in held if receipt not in rounds.entries)]
    receipts = [
        entry
        for entry in entries
        if isinstance(entry, DeliveryEntry)
        and (entry.receiver, entry.plan) == (coordinator, rounds.plan.digest)
        and is_signed(entry)
    ]
    rosters = {round_: final_of(rosters)[0] for round_, rosters in rounds.rosters.items()}
    for found in arrival_problems(rosters, receipts, rounds.claims):
        if found.round >= first and (last is None or found.round <= last):
            lie = Lie.OMISSION if found.is_left_out else Lie.ORDER
            yield Finding(lie, coordinator, found.round, "arrivals", found.detail, found.claim)


def _roster_findings(rounds: LoggedRounds, first: int, known: set[bytes]) -> Iterator[Finding]:
    coordinator, used = rounds.plan.coordinator, set[bytes]()
    for text in rounds.texts:
        if text.round >= first:
            yield Finding(Lie.ROSTER, coordinator, text.round, "roster", "has signed a text that is no roster")
    # Notices may stand anywhere before their round.
    asked = unasked(rounds.entries, _by_document(rounds)) if rounds.is_whole else ()
    wrong = {roster.document: problem for roster, problem in asked}
    for round_, rosters in sorted(rounds.rosters.items()):
        if round_ < first:
            continue
        if are_two_of_a_kind(rosters):
            yield Finding(Lie.EQUIVOCATION, coordinator, round_, "roster", "has signed two rosters of one round")
        problems = [wrong[roster.document] for roster in rosters if roster.document in wrong]
        problems += filter(None, [wrong_final(rosters)])
        for roster in (roster for roster in rosters if roster.document not in known):
            try:
                require_drawn(roster, used)
                known.add(roster.document)
            except ProtocolError as error:
                problems.append(str(error))
        used.update(roster.beacon for roster in rosters)
        yield from (Finding(Lie.ROSTER, coordinator, round_, "roster", problem) for problem in problems)


def _by_document(rounds: LoggedRounds) -> dict[str, Roster]:
    return {roster.document.hex(): roster for rosters in rounds.rosters.values() for roster in rosters}


def claim_findings(rounds: LoggedRounds, entry: ClaimEntry) -> list[Finding]:
    """The first lie that roots show of one claim, if there is one; its signature has been checked."""
    claim, plan = entry.claim, rounds.plan
    name = plan.phase_name(claim.phase)

    def found(lie: Lie, detail: str, against: bytes = INITIAL) -> list[Finding]:
        return [Finding(lie, entry.worker, claim.round, name, detail, claim.digest, against)]

    other = rounds.places[ClaimPlace(entry.worker, *claim.place)]
    if other.claim != claim:
        return found(Lie.EQUIVOCATION, "has signed two claims for one place", other.claim.digest)
    roster, candidates = rounds.roster_of(entry), rounds.before(claim.round)
    if roster is None:
        raise OperationalError("its roster isn't in this log: its author has to show one that the coordinator signed")
    if claim.round and not candidates:
        raise OperationalError(f"the roster of round {claim.round - 1} isn't in this log: ask its keeper")
    known: list[Roster | None] = [*candidates] or [None]
    # Where the coordinator has signed two rosters, its author can't know but one: either of them serves it.
    problems = [_wrong_claim(rounds, entry, roster, before) for before in known]
    first = problems[0]
    return [] if first is None or None in problems else found(*first)


def _wrong_claim(
    rounds: LoggedRounds, entry: ClaimEntry, roster: Roster, before: Roster | None
) -> tuple[Lie, str] | None:
    """What is wrong with a claim under its roster and the one of the round before."""
    claim, plan = entry.claim, rounds.plan
    if claim.round >= plan.rounds:
        return Lie.PHASE, f"makes a claim behind the last of {plan.rounds} rounds"
    try:
        member = roster.members[roster.place(entry.worker)]
        place = ClaimPlace(entry.worker, *claim.place)
        required = required_sources(plan, roster, before, place)
        phase, constants = plan.phases[claim.phase], plan.phases[claim.phase].constants_of(member.seat)
    except ProtocolError as error:
        return Lie.PHASE, f"makes a claim that the plan has no place for: {error}"
    if roster.provisional and needs_final(phase):
        return Lie.ROSTER, "follows from other members, and names the provisional roster instead of the final one"
    expected = (phase.program_hash, constants.root, phase.first_step(claim.round, claim.part), phase.steps)
    if (claim.program, claim.constants, claim.first_step, claim.steps) != expected:
        return Lie.PHASE, "has run another program, other data or other steps than the plan has"
    sources = rounds.sources(entry)
    if len(sources) != len(required):
        return Lie.SOURCE, f"names {len(sources)} sources for {len(required)} slots"
    for slot, (source, rule) in enumerate(zip(sources, required, strict=True)):
        if problem := _wrong_source(rounds, source, rule):
            return Lie.SOURCE, f"slot {slot} {problem}"
    if start_of(sources) != claim.start:
        return Lie.START, "starts from another state than the one that its sources give"
    return None


def _wrong_source(rounds: LoggedRounds, source: BoundSlot, rule: RequiredSource) -> str:
    """What is wrong with a source, in a few words; empty if nothing is."""
    if rule.place is None:
        if source.claim != INITIAL or source.slot != rule.slot:
            return "has its initial value in the plan, and another source was named"
        return "" if source.root == rounds.plan.initial[rule.slot].root else "hasn't the plan's initial value"
    if source.claim == INITIAL:
        return f"begins with an initial value; the plan's rule gives a claim of {rule.place.worker}"
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
