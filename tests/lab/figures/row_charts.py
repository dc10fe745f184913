"""Charts with one row for each thing, its name at the left: bars, or marks on a common scale. On a light card."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pol.report.elements.html_elements import Markup, element

ROW, SIZE, BACK = 20, 12, "#ffffff"
# The color-blind-safe palette of Okabe and Ito.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
INK, FAINT, LIMIT = "#212529", "#ced4da", "#d55e00"


@dataclass(frozen=True)
class Scale:
    """From numbers to the width between ``left`` and ``right``; ``log`` is for ratios."""

    low: float
    high: float
    left: float
    right: float
    log: bool = False

    def x(self, value: float) -> float:
        """The horizontal coordinate of a number, clamped to the scale."""
        inside = min(max(value, self.low), self.high)
        low, high, at = (math.log(n) if self.log else n for n in (self.low, self.high, inside))
        return self.left + (at - low) / (high - low) * (self.right - self.left)


def bars(rows: Mapping[str, float], title: str, unit: str, *, width: int = 560, names: int = 200) -> Markup:
    """A bar for each row with its number; ``names`` is the width of the names' column."""
    scale = Scale(0.0, max(rows.values()), names, width - 76)
    parts = []
    for number, (name, value) in enumerate(rows.items()):
        y = 44 + number * ROW
        parts.append(text(names - 8, y + 14, name, "end"))
        parts.append(
            element("rect", x=names, y=y + 3, width=scale.x(value) - names, height=ROW - 6, fill=COLORS[0], rx=2)
        )
        parts.append(text(scale.x(value) + 6, y + 14, f"{value:,.0f}"))
    return card([*parts, text(width - 12, 22, unit, "end")], title, width, 52 + len(rows) * ROW)


def dots(
    rows: Mapping[str, Sequence[float | None]],
    series: Sequence[str],
    title: str,
    scale: Scale,
    ticks: Mapping[float, str],
    *,
    limit: float | None = None,
    marked: frozenset[str] = frozenset(),
) -> Markup:
    """A row for each name with a mark of each series; ``limit`` is a dashed line; ``marked`` names are colored."""
    width, height = scale.right + 20, 76 + len(rows) * ROW
    parts = []
    for tick, told in ticks.items():
        parts.append(line((scale.x(tick), 62), (scale.x(tick), height - 10), FAINT))
        parts.append(text(scale.x(tick), 56, told, "middle"))
    if limit is not None:
        parts.append(line((scale.x(limit), 62), (scale.x(limit), height - 10), LIMIT, dashed=True))
    for number, (name, values) in enumerate(rows.items()):
        y = 66 + number * ROW
        parts.append(text(scale.left - 12, y + 14, name, "end", LIMIT if name in marked else INK))
        for index, value in enumerate(values):
            if value is not None:
                tip = element("title", f"{name}, {series[index]}: {value:.3g}")
                # The first series is an open ring, so that another one of the same value shows inside of it.
                ring = {"fill": BACK, "stroke": COLORS[0], "stroke_width": 2} if index == 0 else {"fill": COLORS[index]}
                parts.append(element("circle", tip, cx=scale.x(value), cy=y + 10, r=5.5 - 2 * index, **ring))
    for index, name in enumerate(series):
        x = 16 + index * (width - 32) / len(series)
        ring = {"fill": BACK, "stroke": COLORS[0], "stroke_width": 2} if index == 0 else {"fill": COLORS[index]}
        parts += [element("circle", cx=x + 4, cy=36, r=4, **ring), text(x + 14, 40, name)]
    return card(parts, title, width, height)


def card(parts: Sequence[Markup], title: str, width: float, height: float) -> Markup:
    """Parts on a light card with a title, which is readable on light and dark pages."""
    back = element("rect", x=0, y=0, width=width, height=height, rx=8, fill=BACK)
    head = element("text", title, x=14, y=22, fill=INK, font_size=14, font_weight="bold")
    return element(
        "svg",
        back,
        head,
        *parts,
        role="img",
        aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        font_size=SIZE,
        font_family="sans-serif",
    )


def text(x: float, y: float, told: str, anchor: str = "start", color: str = INK, **more: str | float) -> Markup:
    """A line of text; ``y`` is its baseline."""
    return element("text", told, x=x, y=y, text_anchor=anchor, fill=color, **more)


def line(start: tuple[float, float], end: tuple[float, float], color: str, *, dashed: bool = False) -> Markup:
    """A thin straight line."""
    dash = "5 4" if dashed else "none"
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=color, stroke_dasharray=dash)
