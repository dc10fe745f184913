"""A dispute as a picture: a row for each move, divided into the open parts; the picked part becomes the next row."""

from __future__ import annotations

from collections.abc import Sequence

from pol.report.disputes.dispute_entries import DisputeEntry
from pol.report.elements.html_elements import Markup, element

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
