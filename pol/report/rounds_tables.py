"""Who did what in a training in rounds: a grid of workers by rounds, messages with their receipts, all claims."""

from __future__ import annotations

from collections.abc import Mapping

from pol.report.elements.html_elements import Markup, element, join, table
from pol.report.elements.page_parts import box, counted, folded, note
from pol.rounds.auditing.drawn_audit import RoundsAudit
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.log.logged_rounds import LoggedRounds

MOST_ROWS = 500
Seats = Mapping[str, int]
"""Seats of workers by their names."""


def grid(audit: RoundsAudit, seats: Seats) -> Markup:
    """A row for each worker, a cell for each round; rows break alike on narrow screens."""
    rounds = audit.rounds
    replayed = {entry.claim.digest for entry in audit.claims}
    lying = {(finding.worker, finding.round) for finding in audit.lies}
    made: dict[tuple[str, int], list[ClaimEntry]] = {}
    for entry in rounds.claims.values():
        made.setdefault((entry.worker, entry.claim.round), []).append(entry)
    numbers = sorted(rounds.rosters)[:MOST_ROWS]

    def cell(worker: str, number: int) -> Markup:
        found = made.get((worker, number), [])
        seen = sum(entry.claim.digest in replayed for entry in found)
        tip = f"worker {seats[worker]}, round {number}: {counted(len(found), 'claim')}, {seen} replayed"
        if not found:
            return element("span", "", class_="cell none", title=f"worker {seats[worker]} isn't in round {number}")
        is_liar = (worker, number) in lying
        kind = "bad" if is_liar else "good" if seen == len(found) else ""
        return element("span", "lie" if is_liar else str(len(found)), class_=f"cell {kind}".rstrip(), title=tip)

    def row(name: Markup, cells: list[Markup]) -> Markup:
        return join((name, element("div", *cells)))

    titles = [element("span", str(number), class_="cell none") for number in numbers]
    rows = [row(element("span", "round"), titles)]
    for worker, seat in sorted(seats.items(), key=lambda pair: pair[1]):
        named = element("span", f"worker {seat} ", element("code", worker[:8]))
        rows.append(row(named, [cell(worker, number) for number in numbers]))
    told = "Numbers are claims; green: all replayed, gray: sources and signatures checked by roots."
    return join((box("cells", *rows), note(told)))


def messages(rounds: LoggedRounds, seats: Seats) -> Markup:
    """The claims that others have acknowledged by signed receipts."""
    receivers: dict[bytes, list[str]] = {}
    for entry in rounds.entries:
        if isinstance(entry, DeliveryEntry):
            receivers.setdefault(entry.claim, []).append(str(seats.get(entry.receiver, entry.receiver[:10])))
    sent = sorted(
        (rounds.claims[claim] for claim in receivers if claim in rounds.claims),
        key=lambda entry: (*entry.claim.place, seats.get(entry.worker, -1)),
    )
    rows = [
        (
            str(entry.claim.round),
            rounds.plan.phase_name(entry.claim.phase),
            str(seats.get(entry.worker, entry.worker[:10])),
            ", ".join(sorted(receivers[entry.claim.digest])),
            element("code", entry.claim.end.hex()[:16]),
        )
        for entry in sent
    ]
    listed = table(("round", "phase", "from worker", "receipts of", "root"), rows[:MOST_ROWS])
    receipts = sum(map(len, receivers.values()))
    return _folded(f"{counted(len(rows), 'message')} with {counted(receipts, 'signed receipt')}", listed, len(rows))


def claims(audit: RoundsAudit, seats: Seats) -> Markup:
    """All claims, and how each was checked."""
    lies = {finding.claim: finding.lie.value for finding in audit.findings}
    replayed = {entry.claim.digest for entry in audit.claims}
    everything = sorted(
        audit.rounds.claims.values(), key=lambda entry: (*entry.claim.place, seats.get(entry.worker, -1))
    )
    rows = [
        (
            str(entry.claim.round),
            audit.plan.phase_name(entry.claim.phase),
            str(seats.get(entry.worker, entry.worker[:10])),
            f"{entry.claim.first_step} to {entry.claim.first_step + entry.claim.steps}",
            element("code", entry.claim.start.hex()[:16]),
            element("code", entry.claim.end.hex()[:16]),
            lies.get(entry.claim.digest) or ("replayed" if entry.claim.digest in replayed else "roots"),
        )
        for entry in everything
    ]
    listed = table(("round", "phase", "worker", "steps", "start", "end", "checked"), rows[:MOST_ROWS])
    return _folded(f"All {counted(len(rows), 'claim')}", listed, len(rows))


def _folded(summary: str, listed: Markup, count: int) -> Markup:
    left = count - MOST_ROWS
    more = [note(f"and {left:,} more, which pol audit --json lists")] if left > 0 else []
    return folded(summary, listed, *more)
