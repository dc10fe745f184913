"""A self-contained page about a verification: a report that its reader can check and pass on."""

from __future__ import annotations

from collections.abc import Sequence

from pol.claims.acceptance_rule import relative_limit
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import Component, StepProgram
from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, join, table
from pol.report.elements.page_parts import (
    badge,
    box,
    bullets,
    card,
    counted,
    facts,
    folded,
    moment,
    note,
    page_of,
    pairs,
    tabled,
)
from pol.report.verification_scope import Occasion, meaning, unchecked
from pol.verification.examination.proof_examination import SegmentDraw
from pol.verification.examination.screening import SUSPICIOUS
from pol.verification.examination.verification_report import VerificationReport, draw_reasons, limit_shares
from pol.verification.verdict.verdict import Outcome

KINDS = {Outcome.ACCEPTED: "good", Outcome.REJECTED: "bad", Outcome.INCONCLUSIVE: "live"}
COLORS = {Outcome.ACCEPTED: "var(--good)", Outcome.REJECTED: "var(--bad)", Outcome.INCONCLUSIVE: "var(--link)"}
REPEATED = "Same store, same draw: the verdict has to be the same on any machine. It needs no key and no chain."
MOST_ROWS = 500
MOST_NAMES = 6


def page(found: VerificationReport, occasion: Occasion, more: Sequence[Markup] = ()) -> str:
    """The page as HTML; ``more`` are cards about the training itself."""
    parts = [
        element("h1", "Verification of a learning proof"),
        _verdict(found, occasion),
        _subject(found),
        _draw(found),
        _distances(found),
        *more,
        _losses(found),
        _segments(found),
        _screen(found),
        card("What wasn't checked", bullets(unchecked(found, occasion))),
        card("Repeat it", element("pre", occasion.command), note(REPEATED)),
        _digests(found),
        _machines(found),
    ]
    return page_of(f"pol verify: {found.verdict.outcome.name.lower()}", *parts)


def _verdict(found: VerificationReport, occasion: Occasion) -> Markup:
    verdict, kind = found.verdict, KINDS[found.verdict.outcome]
    reasons = ", ".join(reason.value for reason in verdict.reasons)
    banner = box(
        f"card verdict {kind}",
        element("b", verdict.outcome.name, class_=kind),
        element("p", meaning(found), class_="lead"),
        element("p", f"{verdict.detail[:1].upper()}{verdict.detail[1:]} ({reasons})."),
        element("h3", "What to do next"),
        bullets(found.advice),
    )
    draw = found.draw
    replayed = "none" if draw is None else f"{len(verdict.examined):,} of {draw.segments:,} segments"
    told = [
        ("verified", moment(occasion.time)),
        ("by", occasion.by or "not named"),
        ("replayed", replayed),
        ("took", f"{found.seconds:.1f} s"),
    ]
    return join((banner, card("", facts(told))))


def _subject(found: VerificationReport) -> Markup:
    rows: list[tuple[str, str | Markup]] = [("store", element("code", found.store))]
    if found.subject is not None:
        task = found.subject.task
        document = task.document
        rows += [
            ("model", document.model or _described(task.program, task.names, Component.PARAMETER)),
            ("optimizer", document.optimizer or _described(task.program, task.names, Component.OPTIMIZER)),
            ("training", f"{document.steps:,} steps in {document.segments:,} segments of {document.interval:,}"),
            ("compared by", "equal roots: the training is exact" if found.is_exact else "thresholds of a profile"),
        ]
        if not found.is_exact:
            limits = (
                f"{c.name.lower()} {relative_limit(t):.3g}" for c, t in zip(Component, found.thresholds, strict=True)
            )
            rows.append(("limits", "in shares of the distance traveled: " + ", ".join(limits)))
    return card("What was verified", tabled(rows))


def _described(program: StepProgram, names: ProgramNames, component: Component) -> str:
    """What a task is about whose author has given no name."""
    own = [
        (name, slot.type.numel)
        for name, slot in zip(names.slots, program.slots, strict=True)
        if slot.component is component
    ]
    if not own:
        return "not named by its author; keeps no state"
    shown = ", ".join(name for name, _ in own[:MOST_NAMES]) + (", ..." if len(own) > MOST_NAMES else "")
    return f"not named by its author; {sum(n for _, n in own):,} numbers in {counted(len(own), 'tensor')}: {shown}"


def _draw(found: VerificationReport) -> Markup:
    draw = found.draw
    if draw is None:
        return Markup()
    told = {result.verdict.segment: result.verdict for result in found.verdict.examined}
    colors = {segment: COLORS[verdict.outcome] for segment, verdict in told.items()}
    tips = {s: f"segment {s}: {v.outcome.name.lower()}, {_chosen(draw, s)}" for s, v in told.items()}
    picture = charts.strip(draw.segments, colors, tips, "all segments, the replayed ones colored by their outcome")
    sentences = (element("p", sentence) for sentence in draw_reasons(found))
    title = "What was drawn, and why"
    if draw.seed is None:
        return card(title, picture, *sentences)
    order = ", ".join(map(str, draw.drawn))
    formula = (
        "Number j of the draw is keccak-256(seed, j as four bytes) modulo the number of segments; repeats are skipped."
    )
    return card(title, picture, *sentences, element("p", f"In the order drawn: {order}"), note(formula))


def _distances(found: VerificationReport) -> Markup:
    verdicts = [result.verdict for result in found.verdict.examined if result.verdict.claim is not None]
    if not verdicts:
        return Markup()
    what = "Distance between the solver's end of a segment and the replayed one, "
    unit = "in shares of the distance that the segment travels." if found.is_exact else "in shares of the limit."
    shares = {v.segment: limit_shares(v, found.thresholds) for v in verdicts}
    if found.is_exact and all(share == 0.0 for each in shares.values() for share in each):
        told = f"Zero in each of {counted(len(verdicts), 'replayed segment')}: the roots are equal, bit for bit."
        return card("Distances", element("p", told))
    series = {
        component.name.lower(): [(v.segment, shares[v.segment][i]) for v in verdicts]
        for i, component in enumerate(Component)
        if any(v.claim is not None and (v.claim.references[i] or v.claim.distances[i]) for v in verdicts)
    }
    chart = charts.marks(series, None if found.is_exact else 1.0, "distances by segment", "segment")
    exact = " In exact mode it has to be zero, and the roots equal." if found.is_exact else ""
    return card("Distances", note(what + unit + exact), chart)


def _losses(found: VerificationReport) -> Markup:
    if found.subject is None:
        return Markup()
    interval = found.subject.task.document.interval
    runs: dict[str, list[list[tuple[int, float]]]] = {}
    for result in sorted(found.verdict.examined, key=lambda result: result.verdict.segment):
        first = result.verdict.segment * interval
        for name, values in result.observed.items():
            runs.setdefault(name, []).append([(first + i, value) for i, value in enumerate(values)])
    if not runs:
        return Markup()
    told = "As the replay observed it. Dotted between replayed segments, where nothing was observed."
    return card("Loss in the replayed segments", note(told), charts.lines(runs, "observed values by step", "step"))


def _segments(found: VerificationReport) -> Markup:
    examined = found.verdict.examined
    if not examined or found.subject is None or found.draw is None:
        return Markup()
    interval = found.subject.task.document.interval
    rows: dict[bool, list[list[str | Markup]]] = {True: [], False: []}
    for result in sorted(examined, key=lambda result: result.verdict.segment):
        verdict, first = result.verdict, result.verdict.segment * interval
        far = [f"{share:.3g}" for share in limit_shares(verdict, found.thresholds)] or ["-"] * len(Component)
        reasons = ", ".join(reason.value for reason in verdict.reasons)
        steps = f"{first} to {first + interval}"
        outcome = badge(verdict.outcome.name.lower(), KINDS[verdict.outcome])
        row = [str(verdict.segment), steps, _chosen(found.draw, verdict.segment), outcome, *far, reasons]
        rows[verdict.outcome is Outcome.ACCEPTED].append(row)
    head = ["segment", "steps", "why", "outcome", *(c.name.lower() for c in Component), "reasons"]
    told = (r.verdict for r in examined if r.verdict.outcome is not Outcome.ACCEPTED)
    details = bullets(f"Segment {v.segment}: {v.detail}." for v in told)
    others, fine = rows[False], rows[True]
    parts = [details, table(head, others)] if others else []
    if fine:
        left = len(fine) - MOST_ROWS
        more = [note(f"and {left:,} more; --json lists them all")] if left > 0 else []
        parts.append(folded(f"{counted(len(fine), 'accepted segment')}", table(head, fine[:MOST_ROWS]), *more))
    return card("Segments", *parts)


def _screen(found: VerificationReport) -> Markup:
    if not found.suspicions:
        return Markup()
    points = [(s.segment, s.moved) for s in sorted(found.suspicions, key=lambda s: s.segment)]
    chart = charts.marks({"moved": points}, None, "movement of the parameters by segment, L2", "segment")
    rows = [[str(s.segment), f"{s.moved:.4g}", f"{s.score:.3g}"] for s in found.suspicions[:10]]
    told = (
        "Movement of the parameters in each segment, from checkpoints alone. The score says how unusual they and the "
        "optimizer's state are, in length or direction; 1 is typical. A segment "
        f"from {SUSPICIOUS:g} on differs from its neighbors: a hint where to replay, and no evidence."
    )
    listed = table(["segment", "moved (L2)", "score"], rows)
    return card("Where the screen looks", note(told), chart, folded("The most unusual segments", listed))


def _digests(found: VerificationReport) -> Markup:
    rows: dict[str, str | Markup] = {"learning proof": found.proof or "inside of the learning record"}
    if found.subject is not None:
        task, proof = found.subject.task, found.subject.proof
        document = task.document
        rows |= {
            "task": task.digest,
            "program": document.program_hash.hex(),
            "data": document.constants_root.hex(),
            "order of the data": proof.order_root.hex(),
            "first state": document.initial_state_root.hex(),
            "last state": proof.checkpoints[-1].state_root.hex(),
            "checkpoint log": proof.log_root.hex(),
        }
    if found.profile is not None:
        rows["profile"] = found.profile
    if found.draw is not None and found.draw.seed is not None:
        rows["seed of the draw"] = found.draw.seed.hex()
    return card("Digests", pairs(rows))


def _machines(found: VerificationReport) -> Markup:
    parts = [note("Of this verifier:"), pairs(dict(found.machine) | {"engine": found.engine})]
    if found.subject is not None and found.subject.proof.environment:
        said = pairs(dict(sorted(found.subject.proof.environment.items())))
        parts.append(folded("Of the solver, as it says itself; nothing depends on it", said))
    return card("Machines", *parts)


def _chosen(draw: SegmentDraw, segment: int) -> str:
    if segment in draw.drawn:
        return "all" if draw.seed is None else "drawn"
    return "suspicious"
