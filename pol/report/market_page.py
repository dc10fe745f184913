"""Pages about a market: tasks, verdicts with thresholds, and disputes down to one operation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pol.chain.desks.task_registry import Status
from pol.claims.acceptance_rule import EXACT
from pol.dispute.position import Side
from pol.graph.step_program import Component
from pol.report.card_style import STYLE
from pol.report.dispute_entries import entries
from pol.report.dispute_narrowing import narrowing
from pol.report.dispute_picture import COLORS
from pol.report.html_elements import Markup, document, element, join, table
from pol.roles.monitor.market_view import DisputeView, EndReason, MarketView, TaskView
from pol.verification.examination.verification_report import limit_shares
from pol.verification.verdict.verdict import Outcome

ETHER = 10**18
BAR_LIMIT = 1.5
"""Full length of a distance bar, in shares of the limit."""
Link = Callable[[str, str], str]
"""URL of a task or a dispute: ``link("task", key)``."""


def overview(view: MarketView, link: Link) -> Markup:
    """All tasks, newest first."""
    open_disputes = sum(d.winner is Side.NONE for task in view.tasks for d in task.disputes)
    head = element(
        "div",
        _fact("chain", str(view.chain_id)),
        _fact("block", f"{view.block:,}"),
        _fact("tasks", str(len(view.tasks))),
        _fact("disputes under way", str(open_disputes)),
        _fact("vault", view.vault),
        class_="facts",
    )
    rows = (
        (
            element("a", element("code", task.task_id.hex()[:8]), href=link("task", task.task_id.hex())),
            _state(task),
            _waits(task, view.time),
            _ether(task.terms.maximum_price),
            join(_dispute_links(task, link)) if task.disputes else "-",
        )
        for task in reversed(view.tasks)
    )
    listed = table(("task", "state", "what it waits for", "pays at most", "disputes"), rows)
    nothing = element("p", "There is no task on this market yet.")
    return join((element("h1", "Tasks"), head, element("div", listed if view.tasks else nothing, class_="card")))


def whole(view: MarketView) -> str:
    """The whole market as one self-contained file."""

    def link(kind: str, key: str) -> str:
        return f"#{kind}-{key}"

    parts = [overview(view, link)]
    for task in reversed(view.tasks):
        parts.append(element("section", task_page(task, view.time, link), id=f"task-{task.task_id.hex()}"))
        for dispute in task.disputes:
            parts.append(element("section", dispute_page(task, dispute, view.time, link), id=f"dispute-{dispute.key}"))
    told = f"Chain {view.chain_id} at block {view.block:,}, {_when(view.time)} UTC."
    parts.append(element("p", told, class_="note"))
    return document(f"pol: {len(view.tasks)} tasks", STYLE, element("main", *parts))


def task_page(task: TaskView, now: int, link: Link) -> Markup:
    """One task: its state, verdict, disputes and events."""
    t, terms = task.task, task.terms
    facts = element(
        "div",
        _fact("submitter", t.submitter),
        _fact("solver", t.solver if int(t.solver, 16) else "-"),
        _fact("in the seat", t.holder if t.is_seated else "-"),
        _fact("steps", f"{terms.steps:,} in segments of {terms.interval:,}"),
        _fact("segments drawn", str(terms.draws)),
        _fact("pays at most", _ether(terms.maximum_price)),
        _fact("solver's stake", _ether(terms.solver_stake)),
        _fact("verifier's stake", _ether(terms.verifier_stake)),
        class_="facts",
    )
    parts = [
        element("h1", "Task ", element("code", task.task_id.hex()[:16]), " ", _state(task)),
        element("p", _waits(task, now)),
        element("div", facts, class_="card"),
    ]
    if task.verdicts:
        parts.append(element("div", element("h2", "Verdict"), _verdict(task), class_="card"))
    if task.disputes:
        rows = (
            (
                element("a", d.key, href=link("dispute", d.key)),
                d.about,
                _winner(d, now),
                element("code", d.challenger),
                _ether(d.bond),
            )
            for d in task.disputes
        )
        listed = table(("dispute", "about", "state", "challenger", "bond"), rows)
        parts.append(element("div", element("h2", "Disputes"), listed, class_="card"))
    rows_of_time = ((_when(h.time), element("code", h.who[:10]) if h.who else "", h.what) for h in task.happenings)
    events = table(("time", "who", "what"), rows_of_time)
    parts.append(element("div", element("h2", "What happened"), events, class_="card"))
    return join(parts)


def dispute_page(task: TaskView, dispute: DisputeView, now: int, link: Link) -> Markup:
    """One dispute: the side on turn, and all moves."""
    back = element("a", element("code", task.task_id.hex()[:8]), href=link("task", task.task_id.hex()))
    facts = element(
        "div",
        _fact("about", dispute.about),
        _fact("asserter", dispute.asserter),
        _fact("challenger", dispute.challenger),
        _fact("bond", _ether(dispute.bond)),
        class_="facts",
    )
    head = element("h1", f"Dispute {dispute.key} of task ", back, " ", _winner(dispute, now))
    parts = [head, element("div", facts, class_="card"), element("div", *_turn(dispute, now), class_="card")]
    if dispute.record is None or dispute.names is None:
        told = element("p", f"Its moves can't be shown: {dispute.missing}", class_="note")
        return join((*parts, element("div", told, class_="card")))
    moves = list(entries(dispute.record, dispute.names))
    parts.append(element("div", element("h2", "How it narrows"), *narrowing(moves, dispute.executed), class_="card"))
    return join(parts)


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
        return [element("b", f"The {dispute.winner.name.lower()} has won: {how}. "), paid]
    left = max(0, dispute.until - now)
    side = dispute.last.turn.name.lower() if dispute.last is not None else "side on turn"
    share = min(1.0, left / dispute.clock) if dispute.clock else 0.0
    bar = element("i", style=f"width: {share:.1%}; background: {COLORS.get(side, '#6c757d')}")
    told = (
        f"The {side} moves, or loses in {_span(left)}." if left else f"The {side} is out of time: anybody may say so."
    )
    right = "" if dispute.right is Side.NONE else f" A replay here says that the {dispute.right.name.lower()} is right."
    return [element("b", told), right, element("div", bar, class_="clock")]


def _verdict(task: TaskView) -> Markup:
    rows = []
    for verdict in task.verdicts:
        values = limit_shares(verdict, task.thresholds)
        good = verdict.outcome is Outcome.ACCEPTED
        label = element("span", verdict.outcome.name.lower(), class_=f"state {'good' if good else 'bad'}")
        bars = [
            element("div", f"{component.name.lower()} ", _bar(value, exact=task.thresholds == EXACT))
            for component, value in zip(Component, values, strict=False)
            if value > 0
        ]
        rows.append((str(verdict.segment), label, join(bars) if bars else "equal, bit for bit", verdict.detail))
    note = element("p", "Bars are distances in shares of what is allowed; the mark is the limit.", class_="note")
    return join((table(("segment", "claim", "distance", "in words"), rows), note))


def _bar(value: float, *, exact: bool) -> Markup:
    top = 1.0 if exact else BAR_LIMIT
    width = min(value, top) / top
    color = "var(--bad)" if exact or value > 1 else "var(--good)"
    parts = [element("i", style=f"width: {width:.1%}; background: {color}")]
    if not exact:
        parts.append(element("u", style=f"left: {1 / top:.1%}"))
    told = f"{value:.3g} of {'the way' if exact else 'the limit'}"
    return element("div", *parts, class_="bar", title=told, role="img", aria_label=told)


def _dispute_links(task: TaskView, link: Link) -> list[str | Markup]:
    found: list[str | Markup] = []
    for dispute in task.disputes:
        found += [element("a", dispute.key, href=link("dispute", dispute.key)), " "]
    return found


def _state(task: TaskView) -> Markup:
    closed = task.task.status is Status.CLOSED
    name = task.task.outcome.name.lower() if closed else task.task.status.name.lower()
    kind = {"accepted": "good", "rejected": "bad", "cancelled": ""}.get(name, "live")
    return element("span", name, class_=f"state {kind}".rstrip())


def _winner(dispute: DisputeView, now: int) -> Markup:
    if dispute.winner is Side.NONE:
        return element("span", f"under way, {_span(max(0, dispute.until - now))} left", class_="state live")
    kind = "bad" if dispute.winner is Side.CHALLENGER else "good"
    return element("span", f"{dispute.winner.name.lower()} won", class_=f"state {kind}")


def _waits(task: TaskView, now: int) -> str:
    left = "" if task.until is None or task.until <= now else f" (for {_span(task.until - now)} at most)"
    return task.waits[:1].upper() + task.waits[1:] + left + "."


def _fact(name: str, value: str) -> Markup:
    return element("span", f"{name} ", element("b", value))


def _ether(amount: int) -> str:
    return f"{amount / ETHER:,.6f}".rstrip("0").rstrip(".") or "0"


def _when(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _span(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
