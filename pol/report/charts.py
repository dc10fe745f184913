"""Small charts as SVG: marks on a logarithmic scale with a limit, lines, and a strip of segments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pol.report.html_elements import Markup, element, join

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 28, 40
# The color-blind-safe palette of Okabe and Ito.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
INK, FAINT, LIMIT = "#212529", "#ced4da", "#d55e00"


@dataclass(frozen=True)
class Frame:
    """The area of a chart: maps numbers to coordinates."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    def x(self, value: float) -> float:
        """The horizontal coordinate of a number."""
        return LEFT + (value - self.low_x) / ((self.high_x - self.low_x) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """The vertical coordinate of a number, clamped to the area."""
        inside = min(max(value, self.low_y), self.high_y)
        return HEIGHT - BOTTOM - (inside - self.low_y) / ((self.high_y - self.low_y) or 1.0) * (HEIGHT - TOP - BOTTOM)


def marks(series: Mapping[str, Sequence[tuple[int, float]]], limit: float | None, title: str, x_title: str) -> Markup:
    """Marks ``(x, share)`` on a logarithmic scale; 0 is at the bottom, infinite and undefined values at the top."""
    points = [point for values in series.values() for point in values]
    decades = [math.log10(y) for _, y in points if 0.0 < y < math.inf] + ([math.log10(limit)] if limit else [])
    low, high = math.floor(min(decades, default=-1.0)) - 1.0, math.ceil(max(decades, default=0.0)) + 1.0
    xs = [x for x, _ in points]
    frame = Frame(min(xs, default=0) - 0.5, max(xs, default=1) + 0.5, low, high)
    parts = [_grid(frame, {d: _power(d) for d in _few(int(low) + 1, int(high) - 1)})]
    parts.append(_text(LEFT - 6, frame.y(low) + 4, "0", "end"))
    parts.append(_text(LEFT - 6, frame.y(high) + 4, "inf", "end"))
    parts += _ticks(frame, x_title)
    if limit:
        y = frame.y(math.log10(limit))
        parts.append(_line([(LEFT, y), (WIDTH - RIGHT, y)], LIMIT, dashed=True))
        parts.append(_text(WIDTH - RIGHT, y - 4, "limit", "end", LIMIT))
    for number, (name, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * 4
        for x, share in values:
            place = low if share == 0.0 else math.log10(share) if 0.0 < share < math.inf else high
            told = element("title", f"{name}, {x_title} {x}: {share:.3g}")
            color = COLORS[number % len(COLORS)]
            parts.append(element("circle", told, cx=frame.x(x) + shift, cy=frame.y(place), r=3.2, fill=color))
    return _svg([*parts, *_legend(list(series))], title)


def lines(series: Mapping[str, Sequence[Sequence[tuple[int, float]]]], title: str, x_title: str) -> Markup:
    """Each series as lines through its runs of points; a non-finite number leaves a gap."""
    points = [p for runs in series.values() for run in runs for p in run if math.isfinite(p[1])]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    frame = Frame(min(xs, default=0), max(xs, default=1), min(ys, default=0.0), max(ys, default=1.0))
    steps = [frame.low_y + i * (frame.high_y - frame.low_y) / 4 for i in range(5)]
    parts = [_grid(frame, {step: f"{step:.3g}" for step in steps}), *_ticks(frame, x_title)]
    for number, runs in enumerate(series.values()):
        color = COLORS[number % len(COLORS)]
        for run in runs:
            for piece in _finite(run):
                parts.append(_line([(frame.x(x), frame.y(y)) for x, y in piece], color))
    return _svg([*parts, *_legend(list(series))], title)


def strip(count: int, colors: Mapping[int, str], told: Mapping[int, str], title: str) -> Markup:
    """A strip of ``count`` segments, some of them colored."""
    width, height = WIDTH - LEFT - RIGHT, 22
    cell = width / max(1, count)
    parts = [element("rect", x=LEFT, y=4, width=width, height=height, fill="#e9ecef")]
    for segment, color in sorted(colors.items()):
        tip = element("title", told[segment])
        x = LEFT + segment * cell
        parts.append(element("rect", tip, x=x, y=4, width=max(cell - 0.5, 1.0), height=height, fill=color))
    parts.append(_text(LEFT, height + 20, "0", "start"))
    parts.append(_text(WIDTH - RIGHT, height + 20, str(count - 1), "end"))
    return _svg(parts, title, height + 26)


def _finite(run: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    pieces: list[list[tuple[int, float]]] = [[]]
    for x, y in run:
        if math.isfinite(y):
            pieces[-1].append((x, y))
        else:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _svg(parts: Sequence[Markup], title: str, height: float = HEIGHT) -> Markup:
    attributes = {"viewBox": f"0 0 {WIDTH} {height:.0f}", "font_size": "12", "font_family": "sans-serif"}
    return element(
        "svg", *parts, role="img", aria_label=title, xmlns="http://www.w3.org/2000/svg", width=WIDTH, **attributes
    )


def _grid(frame: Frame, labels: Mapping[float, str]) -> Markup:
    parts = []
    for value, label in labels.items():
        y = frame.y(value)
        parts.append(_line([(LEFT, y), (WIDTH - RIGHT, y)], FAINT, width=0.6))
        parts.append(_text(LEFT - 6, y + 4, label, "end"))
    return join(parts)


def _ticks(frame: Frame, title: str) -> list[Markup]:
    low, high = math.ceil(frame.low_x), math.floor(frame.high_x)
    parts = [_text(frame.x(x), HEIGHT - BOTTOM + 16, str(x), "middle") for x in _few(low, high)]
    return [*parts, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, title, "middle")]


def _legend(names: Sequence[str]) -> list[Markup]:
    parts = []
    for i, name in enumerate(names[:6]):
        x = LEFT + 10 + i * 130
        parts.append(element("circle", cx=x, cy=10, r=4, fill=COLORS[i]))
        parts.append(_text(x + 8, 14, name[:18], "start"))
    return parts


def _line(points: Sequence[tuple[float, float]], color: str, *, width: float = 1.5, dashed: bool = False) -> Markup:
    if len(points) == 1:
        return element("circle", cx=points[0][0], cy=points[0][1], r=1.5, fill=color)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = "5 4" if dashed else "none"
    return element("polyline", points=path, fill="none", stroke=color, stroke_width=width, stroke_dasharray=dash)


def _text(x: float, y: float, text: str, anchor: str, color: str = INK) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, fill=color)


def _few(low: int, high: int) -> list[int]:
    """About ten integers from ``low`` to ``high``."""
    every = max(1, math.ceil((high - low + 1) / 10))
    return list(range(low, high + 1, every))


def _power(decade: float) -> str:
    return "1" if decade == 0 else f"1e{decade:.0f}"
