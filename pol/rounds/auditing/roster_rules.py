"""What the rosters of a training have to be beside each other (docs/spec/rounds.md, "Rosters of a round")."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pol.rounds.log.log_entries import Change, LogEntry, MembershipEntry, RosterEntry
from pol.rounds.plan.rounds_plan import MEMBER, PARTNER, ROUTE, Phase
from pol.rounds.roster import Member, Roster


def final_of(rosters: Sequence[Roster]) -> list[Roster]:
    """The final rosters of a round, one if its coordinator is honest; all of them, if none is final."""
    return [roster for roster in rosters if not roster.provisional] or list(rosters)


def are_two_of_a_kind(rosters: Sequence[Roster]) -> bool:
    """Whether a round has two provisional rosters, or two final ones."""
    return len({roster.provisional for roster in rosters}) < len(rosters)


def needs_final(phase: Phase) -> bool:
    """Whether a claim of a phase follows from other members of its own round, and so from the final roster."""
    of_others = (MEMBER, PARTNER, ROUTE)
    is_bound = any(rule.phase and not rule.lag and rule.kind in of_others for rule in phase.sources)
    return is_bound or phase.author_rule is not None


def wrong_final(rosters: Sequence[Roster]) -> str:
    """What is wrong with a final roster beside the provisional one of its round; empty if nothing is."""
    begun = next((roster for roster in rosters if roster.provisional), None)
    for roster in rosters:
        if begun is None or roster.provisional:
            continue
        if roster.begun != begun.document:
            return "the final roster doesn't name the provisional one, which may be signed since"
        kept = set(roster.members)
        if roster.members != tuple(member for member in begun.members if member in kept):
            return "the final roster has others, or another order, than the provisional one"
    return ""


def left_out(rosters: Sequence[Roster], worker: str) -> bool:
    """Whether a worker has begun a round, and its final roster doesn't have it."""
    names = [{member.worker for member in roster.members} for roster in rosters if roster.provisional]
    last = [{member.worker for member in roster.members} for roster in rosters if not roster.provisional]
    return any(worker in begun for begun in names) and any(worker not in final for final in last)


def unasked(entries: Sequence[LogEntry], rosters: Mapping[str, Roster]) -> Iterator[tuple[Roster, str]]:
    """Rosters, by their documents, with a worker that hasn't joined, has left or was moved: by the order of the log."""
    asked: dict[tuple[str, bytes], _Notices] = {}
    first: dict[str, int] = {}
    """The first round in whose roster a worker is."""
    last: dict[str, tuple[int, Member]] = {}
    """The last round before in whose final roster it is, and how."""
    for entry in entries:
        if isinstance(entry, MembershipEntry) and entry.change is not Change.HEARTBEAT:
            asked.setdefault((entry.worker, entry.plan), _Notices()).add(entry.round, entry.change)
        if not isinstance(entry, RosterEntry) or entry.document not in rosters:
            continue
        roster = rosters[entry.document]
        for member in roster.members:
            notices = asked.get((member.worker, roster.plan))
            said, change = (-1, None) if notices is None else notices.newest(roster.round)
            since, was = last.get(member.worker, (-1, member))
            if change is Change.LEAVE:
                yield roster, f"has {member.worker}, which had left"
            elif member.joined != roster.round and first.get(member.worker, roster.round) >= roster.round:
                # It would need no JOIN, and begin with what a member of the round before has.
                yield (
                    roster,
                    f"has {member.worker} as a member since round {member.joined}, and no roster before has it",
                )
            elif member.joined == roster.round > 0 and (change is not Change.JOIN or said <= since < roster.round):
                yield roster, f"has {member.worker} as a new member, and it hasn't asked to join"
            elif since < roster.round and member.joined == was.joined and replace(member, weight=was.weight) != was:
                # Seats and roles decide who computes what with whom: nobody chooses them behind a draw.
                yield roster, f"has moved {member.worker} to another seat or role since round {since}"
        for member in roster.members:
            if not roster.provisional:
                last[member.worker] = (roster.round, member)
            first[member.worker] = min(roster.round, first.get(member.worker, roster.round))


class _Notices:
    """A worker's notices: of those for a round or one before it, which the log has last.

    One whose round isn't before that of a later one is never it again: rounds ascend, and looks are logarithmic.
    """

    def __init__(self) -> None:
        self._rounds: list[int] = []
        self._changes: list[Change] = []

    def add(self, round_: int, change: Change) -> None:
        while self._rounds and self._rounds[-1] >= round_:
            self._rounds.pop()
            self._changes.pop()
        self._rounds.append(round_)
        self._changes.append(change)

    def newest(self, round_: int) -> tuple[int, Change | None]:
        place = bisect_right(self._rounds, round_)
        return (self._rounds[place - 1], self._changes[place - 1]) if place else (-1, None)
