"""Amounts for people, in units of the asset instead of its smallest unit."""

from __future__ import annotations

UNIT = 10**18
"""Smallest units in one unit of the asset (18 places)."""


def amount(value: float) -> str:
    """An amount in units of the asset, with four digits."""
    return f"{value / UNIT:.4g}" if abs(value) < 1000 * UNIT else f"{value / UNIT:,.0f}"
