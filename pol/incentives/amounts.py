"""Amounts as people read them: in units of the asset, not in its smallest unit."""

from __future__ import annotations

UNIT = 10**18
"""The smallest units in one unit of the asset (18 places)."""


def amount(value: float) -> str:
    """In units of the asset, with as many places as it deserves."""
    return f"{value / UNIT:.4g}" if abs(value) < 1000 * UNIT else f"{value / UNIT:,.0f}"
