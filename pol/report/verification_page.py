"""A self-contained page about a verification."""

from __future__ import annotations

from collections.abc import Mapping

from pol.claims.acceptance_rule import relative_limit
from pol.graph.step_program import Component
from pol.report import charts
from pol.report.html_elements import PLAIN_STYLE, Markup, document, element, join, table
from pol.verification.examination.proof_examination import SegmentDraw
from pol.verification.examination.screening import SUSPICIOUS
from pol.verification.examination.verification_report import VerificationReport, draw_reasons, limit_shares
from pol.verification.verdict.verdict import Outcome

OUTCOMES = {Outcome.ACCEPTED: "#009e73", Outcome.REJECTED: "#d55e00", Outcome.INCONCLUSIVE: "#868e96"}
STYLE = (
    PLAIN_STYLE
    + """
.verdict { color: #fff; padding: .8em 1em; border-radius: 4px; } .verdict b { font-size: 1.3em; }
code { font: 13px monospace; overflow-wrap: anywhere; } .wide { overflow-x: auto; }
p.note { color: #495057; font-size: 13px; }
"""
)
MOST_ROWS = 500


def page(found: VerificationReport) -> str:
    """The page as HTML."""
    sections = (_verdict, _subject, _draw, _distances, _losses, _segments, _screen, _machines)
    title = f"pol verify: {found.verdict.outcome.name.lower()}"
    parts = (section(found) for section in sections)
    return document(title, STYLE, element("h1", "Verification of a learning proof"), *parts)


def _verdict(found: VerificationReport) -> Markup:
    verdict = found.verdict
    reasons = ", ".join(reason.value for reason in verdict.reasons)
    banner = element(
        "div",
        element("b", verdict.outcome.name),
        element("div", verdict.detail),
        element("div", f"Reasons: {reasons}"),
        class_="verdict",
        style=f"background: {OUTCOMES[verdict.outcome]}",
    )
    items = (element("li", sentence) for sentence in found.advice)
    return join((banner, element("h2", "What to do next"), element("ul", *items)))


def _subject(found: VerificationReport) -> Markup:
    rows: dict[str, str | Markup] = {"store": found.store, "learning proof": found.proof or "from the learning record"}
    if found.subject is not None:
        task, proof = found.subject.task, found.subject.proof
        document = task.document
        steps = f"{document.steps} in {document.segments} segments of {document.interval}"
        rows |= {"task": task.digest, "model": document.model, "optimizer": document.optimizer, "steps": steps}
        rows |= {"log root": proof.log_root.hex()}
        mode = "exact: equal roots or nothing" if found.is_exact else f"thresholds of profile {found.profile}"
        rows |= {"compared by": mode}
        if not found.is_exact:
            shown = (
                f"{c.name.lower()} {relative_limit(t):.3g}" for c, t in zip(Component, found.thresholds, strict=True)
            )
            rows |= {"limits": "of the distance traveled: " + ", ".join(shown)}
    return join((element("h2", "What was verified"), _pairs(rows)))


def _draw(found: VerificationReport) -> Markup:
    draw = found.draw
    if draw is None:
        return Markup()
    told = {result.verdict.segment: result.verdict for result in found.verdict.examined}
    colors = {segment: OUTCOMES[verdict.outcome] for segment, verdict in told.items()}
    tips = {s: f"segment {s}: {v.outcome.name.lower()}, {_chosen(draw, s)}" for s, v in told.items()}
    picture = charts.strip(draw.segments, colors, tips, "all segments, the replayed ones colored by their outcome")
    sentences = (element("p", sentence) for sentence in draw_reasons(found))
    if draw.seed is None:
        return join((element("h2", "What was drawn, and why"), picture, *sentences))
    order = ", ".join(map(str, draw.drawn))
    formula = (
        "Number j of the draw is keccak-256(seed, j as four bytes) modulo the number of segments; repeats are skipped."
    )
    more = (element("p", f"In the order drawn: {order}"), element("p", formula, class_="note"))
    return join((element("h2", "What was drawn, and why"), picture, *sentences, *more))


def _distances(found: VerificationReport) -> Markup:
    verdicts = [result.verdict for result in found.verdict.examined if result.verdict.claim is not None]
    if not verdicts:
        return Markup()
    series = {
        component.name.lower(): [(v.segment, limit_shares(v, found.thresholds)[i]) for v in verdicts]
        for i, component in enumerate(Component)
    }
    what = "Distance between the solver's end of a segment and the replayed one, "
    unit = "in shares of the distance that the segment travels." if found.is_exact else "in shares of the limit."
    chart = charts.marks(series, None if found.is_exact else 1.0, "distances by segment", "segment")
    note = " In exact mode it has to be zero, and the roots equal." if found.is_exact else ""
    return join((element("h2", "Distances"), element("p", what + unit + note, class_="note"), chart))


def _losses(found: VerificationReport) -> Markup:
    if found.subject is None:
        return Markup()
    interval = found.subject.task.document.interval
    runs: dict[str, list[list[tuple[int, float]]]] = {}
    for result in found.verdict.examined:
        first = result.verdict.segment * interval
        for name, values in result.observed.items():
            runs.setdefault(name, []).append([(first + i, value) for i, value in enumerate(values)])
    if not runs:
        return Markup()
    note = element("p", "As the replay observed it, in the replayed segments.", class_="note")
    return join((element("h2", "Loss"), note, charts.lines(runs, "observed values by step", "step")))


def _segments(found: VerificationReport) -> Markup:
    examined = found.verdict.examined
    if not examined or found.subject is None or found.draw is None:
        return Markup()
    interval = found.subject.task.document.interval
    # Segments that aren't accepted come first, so that they are never left out.
    order = sorted(examined, key=lambda r: (r.verdict.outcome is Outcome.ACCEPTED, r.verdict.segment))
    rows = []
    for result in order[:MOST_ROWS]:
        verdict, first = result.verdict, result.verdict.segment * interval
        far = [f"{share:.3g}" for share in limit_shares(verdict, found.thresholds)] or ["-"] * len(Component)
        reasons = ", ".join(reason.value for reason in verdict.reasons)
        steps = f"{first} to {first + interval}"
        chosen = _chosen(found.draw, verdict.segment)
        outcome = verdict.outcome.name.lower()
        rows.append([str(verdict.segment), steps, chosen, outcome, *far, reasons])
    head = ["segment", "steps", "why", "outcome", *(c.name.lower() for c in Component), "reasons"]
    left = len(examined) - len(rows)
    more = (
        element("p", f"and {left} more accepted segments; --json lists them all", class_="note")
        if left > 0
        else Markup()
    )
    told = [r.verdict for r in order[:MOST_ROWS] if r.verdict.outcome is not Outcome.ACCEPTED]
    details = element("ul", *(element("li", f"segment {verdict.segment}: {verdict.detail}") for verdict in told))
    return join((element("h2", "Segments"), table(head, rows), more, details if told else Markup()))


def _screen(found: VerificationReport) -> Markup:
    if not found.suspicions:
        return Markup()
    points = [(s.segment, s.moved) for s in sorted(found.suspicions, key=lambda s: s.segment)]
    chart = charts.marks({"moved": points}, None, "movement of the parameters by segment", "segment")
    rows = [[str(s.segment), f"{s.moved:.4g}", f"{s.score:.3g}"] for s in found.suspicions[:10]]
    note = (
        "Movement of the parameters in each segment, from checkpoints alone. The score says how unusual they and the "
    )
    note += "optimizer's state are, in length or direction; 1 is typical. A segment "
    note += f"from {SUSPICIOUS:g} on differs from its neighbors: a hint where to replay, and no evidence."
    head = ["segment", "moved", "score"]
    return join((element("h2", "Screen"), element("p", note, class_="note"), chart, table(head, rows)))


def _machines(found: VerificationReport) -> Markup:
    rows = dict(found.machine) | {"engine": found.engine, "seconds": f"{found.seconds:.1f}"}
    parts = [element("h2", "Environment"), element("p", "Of this verifier:", class_="note"), _pairs(rows)]
    if found.subject is not None and found.subject.proof.environment:
        told = element("p", "Of the solver, as it says itself; nothing depends on it:", class_="note")
        parts += [told, _pairs(dict(sorted(found.subject.proof.environment.items())))]
    return join(parts)


def _chosen(draw: SegmentDraw, segment: int) -> str:
    if segment in draw.drawn:
        return "all" if draw.seed is None else "drawn"
    return "suspicious"


def _pairs(rows: Mapping[str, str | Markup]) -> Markup:
    return table(("", ""), ((name, element("code", value)) for name, value in rows.items()))
