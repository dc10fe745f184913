"""The type of options that are a share: a probability, or a fraction of segments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click


class Share(click.ParamType[Fraction]):
    """A number above 0 and up to 1, exactly as it is written: 0.05, 5%, 1/20; with ``zero`` also 0."""

    name = "share"

    def __init__(self, zero: bool = False) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """The exact number."""
        text = str(value).strip()
        try:
            share = Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{text!r} isn't a number; write 0.05, 5% or 1/20", param, ctx)
        if not (0 < share <= 1 or (self._zero and share == 0)):
            self.fail(f"{text} isn't {'from' if self._zero else 'above'} 0 and up to 1 (or 100%)", param, ctx)
        return share
