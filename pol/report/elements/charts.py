"""Small charts: marks on a logarithmic scale with a limit, lines, and a strip of segments.

The drawing stretches with the page; numbers beside it are text of the page, so that a phone shows them at full size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pol.report.elements.html_elements import Markup, element

SIZE = 1000
"""Width and height of a drawing in its own units."""
COLORS = 6
"""Colors of series in the style: the color-blind-safe palette of Okabe and Ito."""
MOST_TICKS = 6


@dataclass(frozen=True)
class Frame:
    """The area of a chart: maps numbers to coordinates."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    def x(self, value: float) -> float:
        """The horizontal coordinate of a number."""
        return (value - self.low_x) / ((self.high_x - self.low_x) or 1.0) * SIZE

    def y(self, value: float) -> float:
        """The vertical coordinate of a number, clamped to the area."""
        inside = min(max(value, self.low_y), self.high_y)
        return SIZE - (inside - self.low_y) / ((self.high_y - self.low_y) or 1.0) * SIZE


def marks(series: Mapping[str, Sequence[tuple[int, float]]], limit: float | None, title: str, x_title: str) -> Markup:
    """Marks ``(x, share)`` on a logarithmic scale; 0 is at the bottom, infinite and undefined values at the top."""
    points = [point for values in series.values() for point in values]
    decades = [math.log10(y) for _, y in points if 0.0 < y < math.inf] + ([math.log10(limit)] if limit else [])
    low, high = math.floor(min(decades, default=-1.0)) - 1.0, math.ceil(max(decades, default=0.0)) + 1.0
    xs = [x for x, _ in points]
    frame = Frame(min(xs, default=0) - 0.5, max(xs, default=1) + 0.5, low, high)
    labels = {low: "0"} | {float(d): f"1e{d}" if d else "1" for d in _few(int(low) + 1, int(high) - 1)} | {high: "inf"}
    parts = [_line([(0, frame.y(y)), (SIZE, frame.y(y))], "grid") for y in labels]
    if limit:
        y = frame.y(math.log10(limit))
        parts.append(_line([(0, y), (SIZE, y)], "limit", told="limit"))
    for number, (name, values) in enumerate(series.items()):
        # Series of one place stand beside each other.
        shift = (number - (len(series) - 1) / 2) * min(8.0, 250 / max(1, len({*xs}) * len(series)))
        for x, share in values:
            place = low if share == 0.0 else math.log10(share) if 0.0 < share < math.inf else high
            parts.append(_dot(frame.x(x) + shift, frame.y(place), number, f"{name}, {x_title} {x}: {share:.3g}"))
    names = list(series) if len(series) > 1 or limit else []
    return _figure(frame, parts, labels, (title, x_title), names, is_limited=bool(limit))


def lines(series: Mapping[str, Sequence[Sequence[tuple[int, float]]]], title: str, x_title: str) -> Markup:
    """Each series as lines through its runs of points, joined by dots; a non-finite number leaves a gap."""
    points = [p for runs in series.values() for run in runs for p in run if math.isfinite(p[1])]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    ticks = _round_numbers(min(ys, default=0.0), max(ys, default=1.0))
    frame = Frame(min(xs, default=0), max(xs, default=1), min([*ys, ticks[0]]), max([*ys, ticks[-1]]))
    parts = [_line([(0, frame.y(tick)), (SIZE, frame.y(tick))], "grid") for tick in ticks]
    for number, (name, runs) in enumerate(series.items()):
        before: tuple[float, float] | None = None
        for run in runs:
            for piece in _finite(run):
                placed = [(frame.x(x), frame.y(y)) for x, y in piece]
                if before is not None and piece[0] == next(iter(run)):
                    parts.append(_line([before, placed[0]], "gap", number))
                told = f"{name}, {x_title} {piece[0][0]}: {piece[0][1]:.4g}"
                if len(piece) > 1:
                    told += f", {x_title} {piece[-1][0]}: {piece[-1][1]:.4g}"
                    parts.append(_line(placed, "curve", number, told))
                else:
                    parts.append(_dot(*placed[0], number, told))
                before = placed[-1]
    labels = {tick: f"{tick:.6g}" for tick in ticks}
    return _figure(frame, parts, labels, (title, x_title), list(series))


def strip(count: int, colors: Mapping[int, str], told: Mapping[int, str], title: str) -> Markup:
    """A strip of ``count`` segments, some of them colored."""
    parts = [element("rect", x=0, y=0, width=SIZE, height=SIZE)]
    cell = SIZE / max(1, count)
    for segment, color in sorted(colors.items()):
        gap = cell * 0.08
        width, style = max(cell - 2 * gap, SIZE / 300), f"fill: {color}"
        tip = element("title", told[segment])
        parts.append(element("rect", tip, x=segment * cell + gap, y=0, width=width, height=SIZE, style=style))
    ends = (element("span", str(at), style=f"left: {100 * at / max(1, count - 1):.0f}%") for at in {0, count - 1})
    plot = (element("div", class_="ys"), _drawing(parts), element("div", *ends, class_="xs"))
    return element("figure", element("div", *plot, class_="plot strip"), role="img", aria_label=title)


def _finite(run: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    pieces: list[list[tuple[int, float]]] = [[]]
    for x, y in run:
        if math.isfinite(y):
            pieces[-1].append((x, y))
        else:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _figure(
    frame: Frame,
    parts: Sequence[Markup],
    labels: Mapping[float, str],
    titles: tuple[str, str],
    names: Sequence[str],
    *,
    is_limited: bool = False,
) -> Markup:
    title, x_title = titles
    legend = [element("span", _swatch(_color(number)), name) for number, name in enumerate(names)]
    if is_limited:
        legend.append(element("span", _swatch("var(--bad)"), "limit"))
    rows = (element("span", text, style=f"bottom: {100 - frame.y(y) / 10:.1f}%") for y, text in labels.items())
    low, high = math.ceil(frame.low_x), math.floor(frame.high_x)
    columns = (element("span", str(x), style=f"left: {frame.x(x) / 10:.1f}%") for x in _few(low, high))
    widest = max((len(text) for text in labels.values()), default=1)
    plot = (
        element("div", *rows, class_="ys", style=f"width: {widest}ch"),
        _drawing(parts),
        element("div", *columns, class_="xs"),
    )
    drawn = element("div", *plot, class_="plot")
    told = element("figcaption", f"{title}; {x_title} from left to right")
    return element("figure", element("div", *legend, class_="legend"), drawn, told, role="img", aria_label=title)


def _drawing(parts: Sequence[Markup]) -> Markup:
    box = {"viewBox": f"0 0 {SIZE} {SIZE}", "preserveAspectRatio": "none"}
    return element("svg", *parts, xmlns="http://www.w3.org/2000/svg", **box)


def _line(points: Iterable[tuple[float, float]], kind: str, number: int | None = None, told: str = "") -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = {} if number is None else {"style": f"stroke: {_color(number)}"}
    tip = [element("title", told)] if told else []
    return element("polyline", *tip, points=path, class_=kind, **style)


def _dot(x: float, y: float, number: int, told: str) -> Markup:
    # A line of no length with round ends: the drawing's stretching leaves it round.
    tip, style = element("title", told), f"stroke: {_color(number)}"
    return element("line", tip, x1=x, y1=y, x2=x + 0.01, y2=y, class_="dot", style=style)


def _swatch(color: str) -> Markup:
    return element("i", style=f"background: {color}")


def _color(number: int) -> str:
    return f"var(--s{number % COLORS})"


def _few(low: int, high: int) -> list[int]:
    """A few integers from ``low`` to ``high``, at steps of 1, 2 or 5 times a power of ten."""
    every = 1
    while (high - low) // every >= MOST_TICKS:
        every = every * 5 // 2 if str(every).startswith("2") else every * 2
    return list(range(-(-low // every) * every, high + 1, every))


def _round_numbers(low: float, high: float) -> list[float]:
    """A few round numbers that cover ``low`` .. ``high``."""
    width = high - low
    if not (math.isfinite(width) and width > abs(high) * 1e-9):
        return [low] if low == high else [low, high]
    step = 10.0 ** math.floor(math.log10(width / 4))
    step *= next((times for times in (1, 2, 5) if width / (step * times) <= 5), 10)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, last + 1)]
