"""Heat map of two diverging trainings: tensors by checkpoints, colored by the logarithm of the relative distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pol.errors import OperationalError

if TYPE_CHECKING:
    from pol.verification.runs.tensor_comparison import TensorComparison

ROWS = 200
LOW, HIGH = -9, 0
"""Decades of relative distance between the ends of the scale."""
EQUAL, ODD = "#e9ecef", "#212529"
# Points of the map "viridis": light is far.
_SCALE = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
_ROW, _TOP, _LEFT_CHARACTER, _FONT = 16, 64, 6.7, 11


@dataclass(frozen=True)
class Column:
    """The comparison at one checkpoint."""

    title: str
    rows: Sequence[TensorComparison]


def write_heat_map(file: Path, title: str, columns: Sequence[Column]) -> None:
    """Write the heat map as SVG. Raises OperationalError: the file can't be written."""
    try:
        file.write_text(heat_map(title, columns), encoding="utf-8")
    except OSError as error:
        raise OperationalError(f"can't write {file}: {error}") from error


def heat_map(title: str, columns: Sequence[Column]) -> str:
    """The heat map as SVG; of more than 200 tensors the most distant ones, in the order of names."""
    cells = [{row.name: row for row in column.rows} for column in columns]
    names = sorted({name for column in cells for name in column}, key=str.encode)
    left_out = max(0, len(names) - ROWS)
    if left_out:
        farthest = sorted(names, key=lambda name: -max(_rank(column.get(name)) for column in cells))[:ROWS]
        names = [name for name in names if name in set(farthest)]
    margin = 16 + _LEFT_CHARACTER * max((min(len(name), 60) for name in names), default=0)
    cell = min(48.0, max(6.0, 900 / max(1, len(columns))))
    width = max(margin + cell * len(columns) + 24, margin + 320)
    bottom = _TOP + _ROW * len(names)
    parts = [_text(12, 22, title, size=14, weight="bold"), *_names(names, margin)]
    every = max(1, math.ceil(28 / cell))
    for x, column in enumerate(columns):
        left = margin + x * cell
        if x % every == 0:
            parts.append(_text(left + cell / 2, _TOP - 6, column.title, anchor="middle"))
        for y, name in enumerate(names):
            row = cells[x].get(name)
            parts.append(
                f'<rect x="{left:.1f}" y="{_TOP + y * _ROW}" width="{cell:.1f}" height="{_ROW}" fill="{_color(row)}" '
                f'stroke="#ffffff" stroke-width="0.5"><title>{escape(_told(name, column.title, row))}</title></rect>'
            )
    parts.append(_text(margin, _TOP - 22, "step" if len(columns) > 1 else ""))
    parts += _legend(margin, bottom + 22)
    height = bottom + 84
    if left_out:
        parts.append(_text(12, height - 8, f"{left_out} nearer tensors are not shown"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _names(names: Sequence[str], margin: float) -> list[str]:
    shown = [name if len(name) <= 60 else f"{name[:28]}...{name[-29:]}" for name in names]
    return [_text(margin - 6, _TOP + y * _ROW + 12, name, anchor="end") for y, name in enumerate(shown)]


def _legend(left: float, top: float) -> list[str]:
    width = 20.0
    parts = [_text(left, top, "relative distance (L2)")]
    for i, decade in enumerate(range(LOW, HIGH + 1)):
        x = left + i * width
        parts.append(f'<rect x="{x}" y="{top + 6}" width="{width}" height="12" fill="{_scale(decade)}"/>')
        if decade % 3 == 0:
            parts.append(_text(x + width / 2, top + 31, f"1e{decade}" if decade else "1", anchor="middle"))
    for i, (color, what) in enumerate(((EQUAL, "equal"), (ODD, "missing or infinite"))):
        x = left + (HIGH - LOW + 1) * width + 20
        parts.append(f'<rect x="{x}" y="{top + 4 + 16 * i}" width="12" height="12" fill="{color}"/>')
        parts.append(_text(x + 17, top + 14 + 16 * i, what))
    return parts


def _rank(row: TensorComparison | None) -> float:
    if row is None or row.how == "equal":
        return -1.0
    return row.distance.relative if row.distance is not None else math.inf


def _color(row: TensorComparison | None) -> str:
    far = _rank(row)
    if far < 0:
        return EQUAL
    return ODD if not math.isfinite(far) else _scale(math.log10(far) if far else LOW)


def _scale(decade: float) -> str:
    place = (min(max(decade, LOW), HIGH) - LOW) / (HIGH - LOW) * (len(_SCALE) - 1)
    low = min(int(place), len(_SCALE) - 2)
    mixed = (round(a + (b - a) * (place - low)) for a, b in zip(_SCALE[low], _SCALE[low + 1], strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _told(name: str, title: str, row: TensorComparison | None) -> str:
    if row is None:
        return f"{name}, {title}: not there"
    far = f", relative {row.distance.relative:.3g}" if row.distance is not None and row.how != "equal" else ""
    return f"{name}, {title}: {row.how}{far}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = _FONT, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="#212529">{escape(text)}</text>'
    )
