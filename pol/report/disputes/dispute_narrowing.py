"""How a dispute narrows, down to the operation that the chain has executed, as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pol.report.disputes.dispute_entries import DisputeEntry
from pol.report.disputes.last_operation import OneStep, shown
from pol.report.elements.html_elements import Markup, element, table

if TYPE_CHECKING:
    from pol.roles.monitor.market_view import EvmOperation


WIDTH, ROW, BAR, GAP = 360, 70, 18, 30
COLORS = {"asserter": "var(--asserter)", "challenger": "var(--challenger)"}
"""Colors of the sides, as in the page's style."""
LINE, OPEN, FUNNEL = "#adb5bd", "#e9ecef", "#f1f3f5"


def picture(entries: Sequence[DisputeEntry]) -> Markup:
    """All moves of one dispute, oldest first, from the challenge down to the last open part."""
    rows = [entry for entry in entries if entry.lay_open]
    parts: list[Markup] = []
    for number, entry in enumerate(rows):
        y = 6 + number * ROW
        parts += _row(entry, y)
        if number + 1 < len(rows) and entry.picked is not None:
            left, right = _cell(entry.picked, len(entry.lay_open))
            top, bottom = y + GAP + BAR, y + ROW + GAP
            points = f"{left:.1f},{top} {right:.1f},{top} {WIDTH},{bottom} 0,{bottom}"
            parts.insert(0, element("polygon", points=points, fill=FUNNEL, class_="funnel"))
    height = 12 + len(rows) * ROW
    title = f"A dispute in {len(rows)} moves, each of which picks a part of what lies open"
    return element(
        "svg", *parts, role="img", aria_label=title, viewBox=f"0 0 {WIDTH} {height}", xmlns="http://www.w3.org/2000/svg"
    )


def _row(entry: DisputeEntry, y: float) -> list[Markup]:
    color, count = COLORS[entry.row.side], len(entry.lay_open)
    told = f"{entry.number}. {entry.row.side}: {entry.row.picked or entry.row.move}"
    more = f"of {count} at {entry.row.level.lower().replace('_', ' ')}"
    text = [
        element("text", told, x=0, y=y + 14, style=f"fill: {color}", font_size=13, font_weight="bold"),
        element("text", more, x=0, y=y + 27, font_size=10.5, class_="faint", fill="#6c757d"),
    ]
    cells = []
    for index in range(count):
        left, right = _cell(index, count)
        picked = index == entry.picked
        tip = element("title", f"{entry.lay_open[index].part}: {entry.lay_open[index].value}")
        width = max(right - left - (1 if count < WIDTH / 4 else 0), 0.5)
        style = f"fill: {color if picked else OPEN}"
        cells.append(element("rect", tip, x=left, y=y + GAP, width=width, height=BAR, style=style, stroke=LINE))
    return [*text, *cells]


def _cell(index: int, count: int) -> tuple[float, float]:
    return WIDTH * index / count, WIDTH * (index + 1) / count


def narrowing(moves: Sequence[DisputeEntry], executed: OneStep | EvmOperation | None) -> list[Markup]:
    """A dispute as a picture, where it ended, what the chain has executed, and all moves."""
    places = [entry.place for entry in moves]
    found = [element("div", picture(moves), class_="picture")]
    last = next((place for place in reversed(places) if place.node is not None), None)
    if last is not None:
        numbers = (("step", last.step), ("element", last.element), ("term", last.term))
        where = ", ".join(f"{name} {value}" for name, value in numbers if value is not None)
        told = [element("code", f"{last.node}: {where}"), element("code", last.source or "")]
        found.append(element("div", element("b", "Down to"), *told, class_="operation"))
    if executed is not None:
        one = executed
        operands = ", ".join(shown(word, one.op) for word in one.operands)
        found.append(
            element(
                "div",
                element("b", "The chain has executed it"),
                element("code", f"{one.op}({operands})" if one.operands else f"{one.op} in a row"),
                element("code", f"claimed  {shown(one.claimed, one.op)}"),
                element("code", f"it is    {shown(one.computed, one.op)}"),
                class_="operation",
            )
        )
    sides = (element("span", e.row.side, style=f"color: {COLORS[e.row.side]}") for e in moves)
    rows = (
        (str(e.number), side, e.row.move, e.row.picked, e.row.remains) for e, side in zip(moves, sides, strict=True)
    )
    listed = table(("", "side", "move", "picks", "what is left of it"), rows)
    return [*found, element("details", element("summary", f"All {len(moves)} moves"), listed)]
