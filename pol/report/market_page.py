"""Pages about a market: tasks, verdicts with thresholds, and disputes down to one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.claims.acceptance_rule import EXACT
from pol.dispute.position import Side
from pol.graph.step_program import Component
from pol.report.disputes.dispute_entries import entries
from pol.report.disputes.dispute_narrowing import COLORS, narrowing
from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, join, table
from pol.report.elements.page_parts import (
    badge,
    bar,
    box,
    card,
    counted,
    ether,
    facts,
    moment,
    note,
    page_of,
    span,
    stages,
)
from pol.report.training_cards import course_cards
from pol.roles.monitor.market_view import DisputeView, EndReason, MarketView, TaskView
from pol.roles.monitor.task_story import STAGES, following, on_turn, stages_of, standing
from pol.verification.examination.verification_report import limit_shares
from pol.verification.verdict.verdict import Outcome

BAR_LIMIT = 1.5
"""Full length of a distance bar, in shares of the limit."""
Link = Callable[[str, str], str]
"""URL of a task or a dispute: ``link("task", key)``."""


def overview(view: MarketView, link: Link, more: Sequence[Markup] = ()) -> Markup:
    """All tasks, newest first; ``more`` are rows of facts that stand before them."""
    open_disputes = sum(d.winner is Side.NONE for task in view.tasks for d in task.disputes)
    head = facts(
        (
            ("chain", str(view.chain_id)),
            ("block", f"{view.block:,}"),
            ("time of the chain", moment(view.time)),
            ("tasks", str(len(view.tasks))),
            ("disputes under way", str(open_disputes)),
            ("vault", element("code", view.vault)),
        )
    )
    rows = (
        (
            element("a", element("code", task.task_id.hex()[:8]), href=link("task", task.task_id.hex())),
            _state(task),
            element("span", standing(task, view.time)),
            ether(task.terms.maximum_price),
            join(_dispute_links(task, link)) if task.disputes else "none",
        )
        for task in reversed(view.tasks)
    )
    listed = table(("task", "state", "where it stands", "pays at most", "disputes"), rows)
    nothing = element("p", "There is no task on this market yet.")
    tasks = card("Tasks", listed if view.tasks else nothing)
    return join((element("h1", "Market"), card("", head), *more, tasks))


def whole(view: MarketView) -> str:
    """The whole market as one self-contained file."""

    def link(kind: str, key: str) -> str:
        return f"#{kind}-{key}"

    parts = [overview(view, link)]
    for task in reversed(view.tasks):
        parts.append(element("section", task_page(task, view.time, link), id=f"task-{task.task_id.hex()}"))
        for dispute in task.disputes:
            parts.append(element("section", dispute_page(task, dispute, view.time, link), id=f"dispute-{dispute.key}"))
    parts.append(note(f"Chain {view.chain_id} at block {view.block:,}, {moment(view.time)}."))
    return page_of(f"pol: {len(view.tasks)} tasks", *parts)


def task_page(task: TaskView, now: int, link: Link) -> Markup:
    """One task: whose turn it is and what comes next, its progress, draw, verdict, objections, disputes and events."""
    t, terms = task.task, task.terms
    told = facts(
        (
            ("steps", f"{terms.steps:,} in segments of {terms.interval:,}"),
            ("pays at most", ether(terms.maximum_price)),
            ("solver's stake", ether(terms.solver_stake)),
            ("verifier's stake", ether(terms.verifier_stake)),
            ("compared", "bit for bit" if terms.is_exact else "by thresholds of a profile"),
            ("segments drawn", str(terms.draws)),
            ("submitter", element("code", t.submitter)),
            ("solver", element("code", t.solver) if int(t.solver, 16) else "none yet"),
            ("in the seat", element("code", t.holder) if t.is_seated else "nobody"),
        )
    )
    parts = [
        element("h1", "Task ", element("code", task.task_id.hex()[:16]), " ", _state(task)),
        _standing(task, now),
        card("", told),
        *_progress(task),
    ]
    if task.course is not None:
        parts += course_cards(task.course)
    if task.verdicts:
        parts.append(card("Verdict", _verdict(task)))
    if task.objections.objections:
        parts.append(card("Objections", *_objections(task)))
    if task.disputes:
        rows = (
            (
                element("a", d.key, href=link("dispute", d.key)),
                d.about,
                _winner(d, now),
                element("code", d.challenger),
                ether(d.bond),
            )
            for d in task.disputes
        )
        parts.append(card("Disputes", table(("dispute", "about", "state", "challenger", "bond"), rows)))
    happened = (
        (moment(h.time), element("code", h.who[:10]) if h.who else "", h.what) for h in reversed(task.happenings)
    )
    parts.append(card("What happened", table(("time", "who", "what"), happened)))
    return join(parts)


def _standing(task: TaskView, now: int) -> Markup:
    order = stages_of(task.terms)
    closed, outcome = task.task.status is Status.CLOSED, task.task.outcome
    kind = "now" if not closed else "done" if outcome is TaskOutcome.ACCEPTED else "lost"
    at = order.index(task.task.status) if task.task.status in order else 0
    who = on_turn(task.task)
    parts: list[str | Markup] = [element("p", standing(task, now), class_="lead")]
    if who is not None:
        parts.append(element("p", "On turn: ", element("code", who)))
    if following(task):
        parts.append(element("p", following(task)))
    return box("card", *parts, stages([STAGES[status].name for status in order], at, kind))


def _progress(task: TaskView) -> list[Markup]:
    terms, segments = task.terms, task.terms.steps // task.terms.interval
    if not task.checkpoints:
        return []
    done = max(0, task.checkpoints - 1)
    step = done * terms.interval
    told = f"{step:,} of {terms.steps:,} steps: {done:,} of {counted(segments, 'segment')} posted."
    parts: list[Markup] = [element("p", told), bar(done / segments, told)]
    if task.drawn:
        outcomes = {verdict.segment: verdict.outcome for verdict in task.verdicts}
        kinds = {Outcome.ACCEPTED: "var(--good)", Outcome.REJECTED: "var(--bad)"}
        colors = {
            segment: kinds.get(outcomes.get(segment, Outcome.INCONCLUSIVE), "var(--link)") for segment in task.drawn
        }
        tips = {segment: f"segment {segment} was drawn" for segment in task.drawn}
        parts.append(charts.strip(segments, colors, tips, "all segments, the drawn ones colored"))
        parts.append(note("Segments that the beacon has drawn: " + ", ".join(map(str, sorted(task.drawn))) + "."))
    return [card("Progress", *parts)]


def _objections(task: TaskView) -> list[Markup]:
    found = task.objections
    told = f"{counted(found.objections, 'objection')} to segments of the solver's log, {found.open} open"
    told += f", of which {counted(task.counterclaims, 'counterclaim')} by thresholds." if task.counterclaims else "."
    fell = "One was right: the proof has fallen, whatever the verdict says." if found.fell else ""
    rule = "Anybody may object to any segment, drawn or not, and puts up a bond; a chain decides."
    return [element("p", told), *([element("p", fell)] if fell else []), note(rule)]


def dispute_page(task: TaskView, dispute: DisputeView, now: int, link: Link) -> Markup:
    """One dispute: the side on turn, and all moves."""
    back = element("a", element("code", task.task_id.hex()[:8]), href=link("task", task.task_id.hex()))
    told = facts(
        (
            ("about", dispute.about),
            ("bond", ether(dispute.bond)),
            ("time of each side", span(dispute.clock)),
            ("moves", "unknown" if dispute.record is None else str(len(dispute.record.moves))),
            ("asserter", element("code", dispute.asserter)),
            ("challenger", element("code", dispute.challenger)),
        )
    )
    head = element("h1", f"Dispute {dispute.key} of task ", back, " ", _winner(dispute, now))
    parts = [head, box("card", *_turn(dispute, now)), card("", told)]
    if dispute.record is None or dispute.names is None:
        return join((*parts, card("", note(f"Its moves can't be shown: {dispute.missing}"))))
    moves = list(entries(dispute.record, dispute.names))
    return join((*parts, card("How it narrows", *narrowing(moves, dispute.executed))))


def _turn(dispute: DisputeView, now: int) -> list[str | Markup]:
    if dispute.winner is not Side.NONE:
        how = {
            EndReason.TIMEOUT: "the other side ran out of time",
            EndReason.RESIGNED: "the other side gave up",
            EndReason.STEP: "the chain executed the operation itself",
            EndReason.SLOT: "the chain checked a slot of the state",
            EndReason.SUM: "the chain added up a distance",
            EndReason.OTHER_COMPONENT: "the claim is of another component",
            EndReason.NONE: "its events are missing",
        }[dispute.reason]
        paid = "Stakes and bonds have moved." if dispute.settled else "Anybody may settle it."
        return [element("p", f"The {dispute.winner.name.lower()} has won: {how}.", class_="lead"), element("p", paid)]
    left = max(0, dispute.until - now)
    side = dispute.last.turn.name.lower() if dispute.last is not None else "side on turn"
    share = left / dispute.clock if dispute.clock else 0.0
    told = (
        f"The {side} moves until {moment(dispute.until)}, or loses in {span(left)}."
        if left
        else f"The {side} is out of time: anybody may say so."
    )
    right = "" if dispute.right is Side.NONE else f" A replay here says that the {dispute.right.name.lower()} is right."
    then = "Next: the other side answers, until one operation is left, which the chain executes."
    clock = bar(share, f"{span(left)} of {span(dispute.clock)} left", COLORS.get(side, "var(--link)"))
    return [element("p", told + right, class_="lead"), clock, note(then)]


def _verdict(task: TaskView) -> Markup:
    rows = []
    for verdict in task.verdicts:
        values = limit_shares(verdict, task.thresholds)
        label = badge(verdict.outcome.name.lower(), "good" if verdict.outcome is Outcome.ACCEPTED else "bad")
        bars = [
            element("div", f"{component.name.lower()} ", _share(value, exact=task.thresholds == EXACT))
            for component, value in zip(Component, values, strict=False)
            if value > 0
        ]
        rows.append((str(verdict.segment), label, join(bars) if bars else "equal, bit for bit", verdict.detail))
    listed = table(("segment", "claim", "distance", "in words"), rows)
    return join((listed, note("Bars are distances in shares of what is allowed; the mark is the limit.")))


def _share(value: float, *, exact: bool) -> Markup:
    top = 1.0 if exact else BAR_LIMIT
    color = "var(--bad)" if exact or value > 1 else "var(--good)"
    told = f"{value:.3g} of {'the way' if exact else 'the limit'}"
    return bar(value / top, told, color, None if exact else 1 / top)


def _dispute_links(task: TaskView, link: Link) -> list[str | Markup]:
    found: list[str | Markup] = []
    for dispute in task.disputes:
        found += [element("a", dispute.key, href=link("dispute", dispute.key)), " "]
    return found


def _state(task: TaskView) -> Markup:
    closed = task.task.status is Status.CLOSED
    name = task.task.outcome.name.lower() if closed else task.task.status.name.lower()
    return badge(name, {"accepted": "good", "rejected": "bad", "cancelled": ""}.get(name, "live"))


def _winner(dispute: DisputeView, now: int) -> Markup:
    if dispute.winner is Side.NONE:
        return badge(f"under way, {span(max(0, dispute.until - now))} left", "live")
    return badge(f"{dispute.winner.name.lower()} won", "bad" if dispute.winner is Side.CHALLENGER else "good")
