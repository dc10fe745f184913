"""The claim that each slot of a start must come from (docs/spec/rounds.md, "Rules of sources")."""

from __future__ import annotations

from dataclasses import dataclass

from pol.errors import ProtocolError
from pol.rounds.plan.rounds_plan import (
    ANY_PART,
    ARRIVAL,
    NO_INITIAL,
    OWN,
    PART,
    PARTNER,
    ROUTE,
    Phase,
    RoundsPlan,
    SourceRule,
)
from pol.rounds.roster import Roster


@dataclass(frozen=True)
class ClaimPlace:
    """Where a claim stands in a training: one claim at most."""

    worker: str
    round: int
    phase: int
    part: int


@dataclass(frozen=True)
class RequiredSource:
    """What a slot must be bound to: slot ``slot`` of the end of the claim at ``place``, or an initial value."""

    slot: int
    place: ClaimPlace | None = None


def required_sources(
    plan: RoundsPlan, roster: Roster, before: Roster | None, place: ClaimPlace
) -> list[RequiredSource]:
    """The source of each slot of the claim at ``place``; ``before`` is the roster of the round before, if any."""
    phase = require_place(plan, roster, place)
    return [_required(plan, phase, rule, roster, before, place) for rule in phase.sources]


def require_place(plan: RoundsPlan, roster: Roster, place: ClaimPlace) -> Phase:
    """The phase of a claim, whose place the plan and the roster of its round give to its author."""
    own = roster.place(place.worker)
    if not 0 <= place.phase < len(plan.phases):
        raise ProtocolError(f"the plan has no phase {place.phase}")
    phase = plan.phases[place.phase]
    if phase.members not in (0, len(roster.members)):
        raise ProtocolError(f"phase {phase.name} is for {phase.members} members, not for {len(roster.members)} members")
    if place.part >= phase.parts:
        raise ProtocolError(f"phase {phase.name} has {phase.parts} parts, none with the number {place.part}")
    if phase.author_rule:
        author = _worker(phase.author_rule, roster, roster, place, own)
        if author != place.worker:
            raise ProtocolError(f"part {place.part} of phase {phase.name} is {author}'s, {phase.author} of the roster")
    return phase


def _required(
    plan: RoundsPlan, phase: Phase, rule: SourceRule, roster: Roster, before: Roster | None, place: ClaimPlace
) -> RequiredSource:
    if not rule.phase:
        return RequiredSource(rule.initial)
    if rule.kind == ARRIVAL:
        return _arrived(plan, rule, roster, place)
    own = roster.place(place.worker)
    is_joiner = roster.members[own].joined == place.round
    lag = 1 if rule.kind == PART and place.part == 0 else rule.lag
    if lag and before is None:
        return _initial(rule)
    if lag and before is not None and is_joiner and rule.kind in (OWN, PART):
        return _inherited(plan, rule, before) if rule.inherits else _initial(rule)
    there = before if lag and before is not None else roster
    worker = _worker(rule, roster, there, place, own)
    index = plan.phase_index(rule.phase, len(there.members))
    return RequiredSource(rule.slot, ClaimPlace(worker, place.round - lag, index, _part(plan, rule, index, place, lag)))


def _initial(rule: SourceRule) -> RequiredSource:
    if rule.initial == NO_INITIAL:
        raise ProtocolError(f"a slot from phase {rule.phase} has neither an initial value nor a claim before it")
    return RequiredSource(rule.initial)


def _arrived(plan: RoundsPlan, rule: SourceRule, roster: Roster, place: ClaimPlace) -> RequiredSource:
    """The source that the roster's arrivals give; in round 0 nothing has arrived."""
    if place.round == 0:
        return _initial(rule)
    if rule.index >= len(roster.arrivals):
        raise ProtocolError(f"the roster of round {place.round} has no {rule.of} for the phase {rule.phase}")
    arrival = roster.arrivals[rule.index]
    if not 1 <= place.round - arrival.round <= rule.lag:
        raise ProtocolError(
            f"round {place.round} takes an arrival of round {arrival.round}: it has to be of the {rule.lag} before"
        )
    index = plan.phase_index(rule.phase, len(roster.members))
    worker, last = roster.members[arrival.member].worker, plan.phases[index].parts - 1
    return RequiredSource(rule.slot, ClaimPlace(worker, arrival.round, index, last))


def _inherited(plan: RoundsPlan, rule: SourceRule, before: Roster) -> RequiredSource:
    """The source of a joiner: the claim of the first member of the round before."""
    index = plan.phase_index(rule.phase, len(before.members))
    last = plan.phases[index].parts - 1
    return RequiredSource(rule.slot, ClaimPlace(before.members[0].worker, before.round, index, last))


def _worker(rule: SourceRule, roster: Roster, there: Roster, place: ClaimPlace, own: int) -> str:
    match rule.kind:
        case "own" | "part":
            return place.worker
        case "member":
            at = rule.index
        case "partner":
            at = roster.partners[own] if roster.partners else len(roster.members)
        case "holder":
            return holder(roster, there, rule.index, place.worker)
        case _:
            part = _routed(rule, place)
            routes = roster.routes[part] if part < len(roster.routes) else ()
            at = routes[rule.index] if rule.index < len(routes) else len(roster.members)
    members = roster.members if rule.kind in (PARTNER, ROUTE) else there.members
    if at >= len(members):
        raise ProtocolError(f"the roster of round {place.round} has no {rule.of} for the phase {rule.phase}")
    return members[at].worker


def _part(plan: RoundsPlan, rule: SourceRule, phase: int, place: ClaimPlace, lag: int) -> int:
    last = plan.phases[phase].parts - 1
    if rule.kind == ROUTE:
        return _routed(rule, place)
    if rule.kind == PART:
        return last if lag else place.part - 1
    return last


def _routed(rule: SourceRule, place: ClaimPlace) -> int:
    return place.part if rule.part == ANY_PART else rule.part


def holder(roster: Roster, there: Roster, stage: int, worker: str) -> str:
    """Who gives a worker the state of a stage: itself, if a route in the roster ``there`` leads through it.

    Otherwise it is the first one in the routes of ``there``, in the order of parts, that is in ``roster`` as well.

    Raises:
        ProtocolError: none is left.
    """
    places = [route[stage] for route in there.routes if stage < len(route)]
    holders = [there.members[place].worker for place in places]
    if worker in holders:
        return worker
    staying = {member.worker for member in roster.members}
    for other in holders:
        if other in staying:
            return other
    raise ProtocolError(f"nobody in round {roster.round} holds stage {stage} of round {there.round}: recover it")
