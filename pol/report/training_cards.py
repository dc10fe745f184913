"""Cards about a training itself: its loss, how far each tensor moves, and how far it is from its replay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, join, table
from pol.report.elements.page_parts import card, counted, folded, note
from pol.verification.engines.engine import SlotDistance
from pol.verification.examination.training_course import TrainingCourse

FARTHEST = 5


def course_cards(course: TrainingCourse) -> list[Markup]:
    """What checkpoints show: the loss at each of them, and how far each tensor moves."""
    cards = []
    if any(course.observed.values()):
        told = "One step was executed from each published checkpoint: what the program observes there."
        series = {name: [points] for name, points in course.observed.items()}
        cards.append(card("Loss over the whole training", note(told), charts.lines(series, "loss by step", "step")))
    if course.segments:
        columns = [f"steps {first} to {last}" for first, last in course.segments]
        rows = {name: [way[at] for way in course.ways] for at, name in enumerate(course.slots)}
        unit = "How far a tensor moves in a segment, as a share of its length before, from checkpoints alone"
        cards.append(card("How far each tensor moves", slot_map(columns, rows, unit)))
    return cards


def residual_card(distances: Mapping[int, Sequence[SlotDistance]]) -> list[Markup]:
    """How far each tensor of each replayed segment is from its replay; nothing if all are equal."""
    if not any(found.residual for row in distances.values() for found in row):
        return []
    order = sorted(distances)
    rows: dict[str, list[float]] = {}
    for at in order:
        for found in distances[at]:
            rows.setdefault(found.slot, []).append(_share(found))
    unit = "How far a tensor's published end is from its replay, as a share of the way that it goes"
    return [card("Distance of each tensor", slot_map([f"segment {at}" for at in order], rows, unit))]


def farthest(distances: Sequence[SlotDistance]) -> Markup:
    """The tensors of one claim whose published ends are farthest from its replay."""
    apart = sorted((found for found in distances if found.residual), key=lambda found: (-_share(found), found.slot))
    if not apart:
        return note("Its tensors are those of the replay: what differs are integers, or slots that it hasn't shown.")
    rows = [(element("code", d.slot), f"{d.residual:.3g}", f"{100 * _share(d):.3g} %") for d in apart]
    head = ("tensor", "distance from the replay (L2)", "of its way")
    told = f"{counted(len(apart), 'tensor')} of {len(distances)} differ from the replay; the farthest:"
    rest = [folded("All others", table(head, rows[FARTHEST:]))] if len(rows) > FARTHEST else []
    return join((element("p", told), table(head, rows[:FARTHEST]), *rest))


def _share(found: SlotDistance) -> float:
    if found.residual == 0.0:
        return 0.0
    return found.residual / found.way if found.way else math.inf


MOST_SLOTS = 60
DECADES = 6
"""Decades below the largest finite value that have a shade."""


def slot_map(columns: Sequence[str], rows: Mapping[str, Sequence[float]], unit: str) -> Markup:
    """A row for each tensor, a cell for each column; of many tensors those with the largest values.

    NaN is no value. ``unit`` says in words what the numbers are.
    """
    largest = max((v for row in rows.values() for v in row if math.isfinite(v)), default=0.0)
    names = list(rows)
    if len(names) > MOST_SLOTS:
        farthest = {*sorted(names, key=lambda name: -max(map(_rank, rows[name]), default=0.0))[:MOST_SLOTS]}
        names = [name for name in names if name in farthest]
    style = f"grid-template-columns: repeat({max(1, len(columns))}, minmax(0, 1fr))"
    parts = []
    for name in names:
        cells = (_cell(value, largest, f"{name}, {at}") for at, value in zip(columns, rows[name], strict=True))
        parts += [element("code", name), element("div", *cells, style=style)]
    left = len(rows) - len(names)
    more = f" {left} nearer tensors aren't shown." if left else ""
    top = f"{largest:.3g}" if largest else "0"
    told = f"{unit}; the strongest cell is {top}, the faintest {DECADES} decades less. Left: {columns[0]}, right: "
    return join((element("div", *parts, class_="map"), note(f"{told}{columns[-1]}.{more}")))


def _rank(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _cell(value: float, largest: float, told: str) -> Markup:
    tip = f"{told}: {value:.3g}" if not math.isnan(value) else f"{told}: no value"
    if math.isnan(value):
        return element("b", title=tip, style="background: var(--line)")
    if not math.isfinite(value):
        return element("b", title=tip, style="background: var(--bad)")
    if value == 0.0:
        return element("b", title=tip)
    share = 1.0 + math.log10(value / largest) / DECADES if largest else 1.0
    return element("b", title=tip, style=f"background: var(--s0); opacity: {max(0.1, share):.2f}")
