"""Times of a chain in a form for people."""

from __future__ import annotations

from datetime import UTC, datetime

LAST = 253_402_300_799
"""The last second of the year 9999: later ones are shown as numbers."""


def utc(seconds: int) -> str:
    """``2026-11-24 02:05:00 UTC``; a number out of range is shown as seconds."""
    if not 0 < seconds <= LAST:
        return f"{seconds} s"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: int) -> str:
    """``1 d 2 h``, ``90 s``: the two largest units that are not zero."""
    parts, left = [], seconds
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
