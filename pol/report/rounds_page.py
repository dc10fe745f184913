"""A self-contained page about a training in rounds: workers, rounds, messages, and who was caught by which scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import ReplayClaim
from pol.errors import ProtocolError
from pol.graph.node_names import ProgramNames
from pol.report.card_style import STYLE
from pol.report.dispute_entries import DisputeEntry, entries, given_up
from pol.report.dispute_narrowing import narrowing
from pol.report.html_elements import Markup, document, element, join, table
from pol.rounds.claim_replay import load_phase
from pol.rounds.drawn_audit import RoundsAudit
from pol.rounds.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.logged_rounds import LoggedRounds
from pol.rounds.round_audit import Finding, Lie

MOST_ROWS = 500
KINDS = {"accepted": "good", "rejected": "bad", "inconclusive": "live"}
WORDS = {
    Lie.SIGNATURE: "an entry that nobody has signed",
    Lie.EQUIVOCATION: "two signed claims for one place",
    Lie.ROSTER: "a roster that isn't the coordinator's, or isn't drawn",
    Lie.PHASE: "another program, other data or other steps",
    Lie.SOURCE: "a start that doesn't come from where it has to",
    Lie.START: "a start that its sources don't give",
    Lie.EXECUTION: "an end that its program doesn't give",
    Lie.OMISSION: "an acknowledged message, left out of the log",
    Lie.WITHHELD: "data that can't be read: nobody is blamed",
}
ROUNDS_STYLE = """
.grid td, .grid th { text-align: center; padding: 3px 6px; } .grid th:first-child { text-align: left; }
.cell { display: inline-block; min-width: 1.8em; border-radius: 4px; color: #fff; background: #868e96; }
.cell.good { background: var(--good); } .cell.bad { background: var(--bad); }
"""


@dataclass(frozen=True)
class ToldDispute:
    """A dispute about a claim of these rounds, all of its moves checked."""

    claim: ClaimEntry
    moves: tuple[DisputeEntry, ...]

    @classmethod
    def of(cls, rounds: LoggedRounds, record: DisputeRecord, ended_by: str) -> ToldDispute:
        """The dispute of a record.

        Raises:
            ProtocolError: it is about no claim of these rounds, or a move is illegal.
            OperationalError: the store failed.
        """
        about = record.claim
        if not isinstance(about, ReplayClaim):
            raise ProtocolError("the dispute beside these rounds isn't about the execution of a claim")
        for entry in rounds.claims.values():
            claim = entry.claim
            if (claim.program, claim.start, claim.end) == (about.program, about.start, about.end):
                names = load_phase(rounds.store, rounds.plan.phase(claim.phase)).names
                return cls(entry, _moves(record, names, ended_by))
        raise ProtocolError("the dispute beside these rounds is about no claim of them: it was moved here or changed")


def page(audit: RoundsAudit, dispute: ToldDispute | None = None) -> str:
    """The page as HTML."""
    rounds = audit.rounds
    seats = {m.worker: m.seat for rosters in rounds.rosters.values() for roster in rosters for m in roster.members}
    parts = [
        _head(audit, len(seats)),
        *(_caught(finding, seats, dispute) for finding in audit.findings),
        _card("Who did what", _grid(audit, seats)),
        _card("Messages", _messages(rounds, seats)),
        _card("Claims", _claims(audit, seats)),
    ]
    return document(f"pol audit: {audit.outcome}", STYLE + ROUNDS_STYLE, element("main", *parts))


def _head(audit: RoundsAudit, workers: int) -> Markup:
    rounds, plan = audit.rounds, audit.plan
    facts = (
        ("plan", plan.digest.hex()[:16]),
        ("rounds", f"{len(rounds.rosters)} of {plan.rounds}"),
        ("workers", str(workers)),
        ("signed entries", f"{len(rounds.entries):,}"),
        ("claims", f"{len(rounds.claims):,}"),
        ("replayed", f"{len(audit.claims):,}"),
        *sorted(plan.options.items()),
    )
    told = element("span", audit.outcome, class_=f"state {KINDS[audit.outcome]}")
    shown = (element("span", f"{name} ", element("b", value)) for name, value in facts)
    return join((element("h1", f"A training of many workers: {plan.system} ", told), _div("facts card", *shown)))


def _caught(finding: Finding, seats: dict[str, int], dispute: ToldDispute | None) -> Markup:
    who = f"worker {seats[finding.worker]}" if finding.worker in seats else "the coordinator"
    is_lie = finding.lie is not Lie.WITHHELD
    title = f"{who} was caught" if is_lie else f"{who}: withheld"
    parts: list[Markup] = [
        element("h2", title[:1].upper() + title[1:]),
        _div(
            "operation",
            element("b", f"Round {finding.round}, {finding.phase}: {WORDS[finding.lie]}"),
            element("code", finding.worker),
            element("span", f"It {finding.detail}." if is_lie else finding.detail),
        ),
    ]
    if dispute is not None and dispute.claim.claim.digest == finding.claim:
        last = dispute.moves[-1]
        told = f"On a chain: {last.outcome}. The {last.winner} has won."
        parts += [element("p", told), *narrowing(dispute.moves, last.one_step)]
    return _div("card", *parts)


def _grid(audit: RoundsAudit, seats: dict[str, int]) -> Markup:
    """A row for each worker, a column for each round."""
    rounds = audit.rounds
    replayed = {entry.claim.digest for entry in audit.claims}
    lying = {(finding.worker, finding.round) for finding in audit.lies}
    made: dict[tuple[str, int], list[ClaimEntry]] = {}
    for entry in rounds.claims.values():
        made.setdefault((entry.worker, entry.claim.round), []).append(entry)
    numbers = sorted(rounds.rosters)[:MOST_ROWS]

    def cell(worker: str, number: int) -> str | Markup:
        found = made.get((worker, number), [])
        if not found:
            return ""
        seen = sum(entry.claim.digest in replayed for entry in found)
        kind = "bad" if (worker, number) in lying else "good" if seen == len(found) else ""
        tip = f"{len(found)} claims, {seen} replayed"
        return element("span", "lie" if kind == "bad" else str(len(found)), class_=f"cell {kind}".rstrip(), title=tip)

    rows = (
        (f"{seat}: {worker[:10]}", *(cell(worker, number) for number in numbers))
        for worker, seat in sorted(seats.items(), key=lambda pair: pair[1])
    )
    note = "Numbers are claims; green ones were all replayed, gray ones only checked by their roots."
    listed = table(("worker", *(str(number) for number in numbers)), rows)
    return join((_div("grid", listed), element("p", note, class_="note")))


def _messages(rounds: LoggedRounds, seats: dict[str, int]) -> Markup:
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
    listed = table(("round", "phase", "from", "acknowledged by", "root"), rows[:MOST_ROWS])
    return _folded(f"{len(rows)} messages, each with signed receipts", listed, len(rows))


def _claims(audit: RoundsAudit, seats: dict[str, int]) -> Markup:
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
    return _folded(f"All {len(rows)} claims", listed, len(rows))


def _folded(summary: str, listed: Markup, count: int) -> Markup:
    left = count - MOST_ROWS
    more = element("p", f"and {left} more, which pol audit --json lists", class_="note") if left > 0 else Markup()
    return element("details", element("summary", summary), listed, more)


def _card(title: str, *content: Markup) -> Markup:
    return _div("card", element("h2", title), *content)


def _div(kind: str, *content: Markup) -> Markup:
    return element("div", *content, class_=kind)


def _moves(record: DisputeRecord, names: ProgramNames, ended_by: str) -> tuple[DisputeEntry, ...]:
    found: Sequence[DisputeEntry] = list(entries(record, names))
    if found[-1].outcome is None:
        found = [*found, given_up(record, names, ended_by)]
    return tuple(found)
