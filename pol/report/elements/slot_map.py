"""A map of tensors by segments: the stronger a cell, the farther; it fits any width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pol.report.elements.html_elements import Markup, element, join
from pol.report.elements.page_parts import note

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
