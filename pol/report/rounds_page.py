"""A self-contained page about a training in rounds: workers, rounds, loss, and who was caught by which scalar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pol.report.disputes.dispute_narrowing import narrowing
from pol.report.disputes.told_dispute import ToldDispute
from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, join, table
from pol.report.elements.page_parts import bar, box, bullets, card, counted, facts, folded, moment, note, page_of, pairs
from pol.report.training_cards import farthest
from pol.report.verification_scope import Occasion
from pol.rounds.auditing.drawn_audit import RoundsAudit
from pol.rounds.auditing.round_audit import Finding, Lie
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.rounds_course import ClaimCourse
from pol.verification.engines.engine import SlotDistance

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


KINDS = {"accepted": "good", "rejected": "bad", "inconclusive": "live"}
MOST_LINES = 6
WORDS = {
    Lie.SIGNATURE: "an entry that nobody has signed",
    Lie.EQUIVOCATION: "two signed claims for one place",
    Lie.ROSTER: "a roster that isn't the coordinator's, or isn't drawn",
    Lie.PHASE: "another program, other data or other steps",
    Lie.SOURCE: "a start that doesn't come from where it has to",
    Lie.START: "a start that its sources don't give",
    Lie.EXECUTION: "an end that its program doesn't give",
    Lie.OMISSION: "an acknowledged message, left out of the log",
    Lie.ORDER: "arrivals taken in another order than its receipts promise",
    Lie.WITHHELD: "data that can't be read: nobody is blamed",
}


@dataclass(frozen=True)
class RoundsFigures:
    """What is shown of a training besides its audit.

    ``course`` has the loss and the movement of claims, ``distances`` those of the slots of refuted claims by the
    claim's digest, ``dispute`` the one that was kept beside the log, ``seed`` the one that has drawn the claims.
    """

    course: Sequence[ClaimCourse] = ()
    distances: Mapping[bytes, Sequence[SlotDistance]] = field(default_factory=dict)
    dispute: ToldDispute | None = None
    seed: str | None = None


def page(audit: RoundsAudit, figures: RoundsFigures, occasion: Occasion) -> str:
    """The page as HTML."""
    parts = [
        training(audit, figures, occasion),
        card("What wasn't checked", bullets(_unchecked(audit))),
        card("Repeat it", element("pre", occasion.command), note("Anybody can, from the same store; it needs no key.")),
        _digests(audit, figures),
    ]
    return page_of(f"pol audit: {audit.outcome}", *parts)


def training(audit: RoundsAudit, figures: RoundsFigures, occasion: Occasion | None) -> Markup:
    """What there is to see of a training; ``occasion`` is None on a page that is still alive."""
    seats = seats_of(audit)
    parts = [
        _head(audit, len(seats), occasion),
        *(_caught(finding, seats, figures) for finding in audit.findings),
        *_course(figures.course, seats),
        card("Who did what", grid(audit, seats)),
        _drawn(audit, figures, seats),
        card("Messages", messages(audit.rounds, seats)),
        card("Claims", claims(audit, seats)),
    ]
    return join(parts)


def seats_of(audit: RoundsAudit) -> dict[str, int]:
    """Seats of all workers by their names."""
    rosters = (roster for found in audit.rounds.rosters.values() for roster in found)
    return {member.worker: member.seat for roster in rosters for member in roster.members}


def standing(audit: RoundsAudit) -> str:
    """What an audit has found, in a sentence."""
    if audit.outcome == "accepted" and not audit.claims:
        return "Signatures, rosters and sources are right; no execution was repeated yet."
    if audit.outcome == "accepted":
        return "No lie was found in what was looked at."
    if audit.outcome == "inconclusive":
        return "No lie was found; something couldn't be read. That blames nobody."
    seats = seats_of(audit)
    liars = dict.fromkeys(_who(finding.worker, seats) for finding in audit.lies)
    return f"{counted(len(audit.lies), 'lie was', 'lies were')} found, of {', '.join(liars)}; nobody else is to blame."


def state(audit: RoundsAudit) -> tuple[str, str]:
    """The outcome in a word or three, and its kind of badge: roots alone accept nothing."""
    if audit.outcome == "accepted" and not audit.claims:
        return "right by roots", "live"
    return audit.outcome, KINDS[audit.outcome]


def _head(audit: RoundsAudit, workers: int, occasion: Occasion | None) -> Markup:
    rounds, plan = audit.rounds, audit.plan
    outcome, kind = state(audit)
    done = len(rounds.rosters)
    told = [
        ("rounds", f"{done:,} of {plan.rounds:,}"),
        ("workers", f"{workers:,}"),
        ("claims", f"{len(rounds.claims):,}"),
        ("replayed", f"{len(audit.claims):,}"),
        ("signed entries", f"{len(rounds.entries):,}"),
        *sorted(plan.options.items()),
    ]
    if occasion is not None:
        told += [("audited", moment(occasion.time)), ("by", occasion.by or "not named")]
    verdict = box(
        f"card verdict {kind}",
        element("b", outcome.upper(), class_=kind),
        element("p", standing(audit), class_="lead"),
        bar(done / plan.rounds, f"round {done} of {plan.rounds}"),
        note(f"{done:,} of {counted(plan.rounds, 'round')} have begun."),
    )
    return join((element("h1", f"A training of many workers: {plan.system}"), verdict, card("", facts(told))))


def _who(worker: str, seats: Seats) -> str:
    return f"worker {seats[worker]}" if worker in seats else "the coordinator"


def _caught(finding: Finding, seats: Seats, figures: RoundsFigures) -> Markup:
    who, is_lie, dispute = _who(finding.worker, seats), finding.lie is not Lie.WITHHELD, figures.dispute
    title = f"{who} was caught" if is_lie else f"{who}: withheld"
    parts: list[Markup] = [
        box(
            "operation",
            element("b", f"Round {finding.round}, {finding.phase}: {WORDS[finding.lie]}"),
            element("code", finding.worker),
            element("span", f"It {finding.detail}." if is_lie else finding.detail),
        )
    ]
    if finding.claim in figures.distances:
        parts.append(farthest(figures.distances[finding.claim]))
    if dispute is not None and dispute.claim.claim.digest == finding.claim:
        last = dispute.moves[-1]
        told = f"On a chain: {last.outcome}. The {last.winner} has won."
        parts += [element("p", told), *narrowing(dispute.moves, last.one_step)]
    return card(title[:1].upper() + title[1:], *parts)


def _course(course: Sequence[ClaimCourse], seats: Seats) -> list[Markup]:
    if not course:
        return []
    losses: dict[str, dict[str, list[tuple[int, float]]]] = {}
    moved: dict[str, list[tuple[int, float]]] = {}
    for found in course:
        who, step = f"worker {seats.get(found.entry.worker, '?')}", found.entry.claim.first_step
        moved.setdefault(who, []).append((found.entry.claim.round, found.moved))
        for name, value in found.observed.items():
            losses.setdefault(name, {}).setdefault(who, []).append((step, value))
    cards = []
    for name, by_worker in losses.items():
        told = f"The {name} that each claim's program observes in its first step, on the data of its worker."
        chart = charts.lines(_few_series(by_worker), f"{name} by step", "step")
        cards.append(card(name.capitalize(), note(told), chart))
    hint = note("How far a claim moves its weights: what is unlike the others is a hint where to replay, no evidence.")
    if len(moved) > MOST_LINES:
        moved = {"all workers": [point for points in moved.values() for point in points]}
    chart = charts.marks(dict(sorted(moved.items())), None, "movement of the weights by claim, L2", "round")
    return [*cards, card("Where to look", hint, chart)]


def _few_series(by_worker: Mapping[str, list[tuple[int, float]]]) -> dict[str, list[list[tuple[int, float]]]]:
    """A line for each worker, or the mean of all where there are more than a chart can show."""
    if len(by_worker) <= MOST_LINES:
        return {who: [sorted(points)] for who, points in sorted(by_worker.items())}
    at: dict[int, list[float]] = {}
    for step, value in (point for points in by_worker.values() for point in points):
        at.setdefault(step, []).append(value)
    return {f"mean of {len(by_worker)} workers": [[(step, fmean(values)) for step, values in sorted(at.items())]]}


def _drawn(audit: RoundsAudit, figures: RoundsFigures, seats: Seats) -> Markup:
    count, everything = len(audit.claims), len(audit.rounds.claims)
    if not count:
        return card("What was drawn", element("p", "Nothing was replayed: roots, signatures and sources were checked."))
    steps = sum(entry.claim.steps for entry in audit.claims)
    told = [f"{count:,} of {counted(everything, 'claim')} were replayed, {steps:,} steps."]
    if figures.seed is not None:
        told.append(f"They were drawn by the seed {figures.seed}.")
    named = ", ".join(
        f"worker {seats.get(e.worker, '?')} in round {e.claim.round}, {audit.plan.phase_name(e.claim.phase)}"
        for e in audit.claims[:MOST_LINES]
    )
    more = f", and {count - MOST_LINES:,} more" if count > MOST_LINES else ""
    return card("What was drawn", *(element("p", each) for each in told), note(f"{named}{more}."))


def _unchecked(audit: RoundsAudit) -> list[str]:
    left = len(audit.rounds.claims) - len(audit.claims)
    told = []
    if left:
        of = counted(len(audit.rounds.claims), "claim")
        told.append(f"{left:,} of {of} weren't replayed: their execution may be a lie.")
    if not audit.rounds.is_whole:
        told.append("Rounds besides the one that was asked for, and the one before it: their entries weren't read.")
    told.append("Whether the plan, its data and its first weights are good: they are named by their digests.")
    told.append("Who the workers are: they are keys. Two keys may belong to one person.")
    return told


def _digests(audit: RoundsAudit, figures: RoundsFigures) -> Markup:
    rows: dict[str, str | Markup] = {"plan": audit.plan.digest.hex(), "coordinator": audit.plan.coordinator}
    rows |= {f"worker {seat}": worker for worker, seat in sorted(seats_of(audit).items(), key=lambda pair: pair[1])}
    if figures.seed is not None:
        rows["seed of the draw"] = figures.seed
    return card("Digests and keys", pairs(rows))
