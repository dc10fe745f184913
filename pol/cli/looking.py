"""What the commands that look at files and records share: exit codes, and where they print.

0: fine. 1: differs, or the evidence is bad. 2: could not look, or wrong usage.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import click
from rich.console import Console

from pol.errors import OperationalError, UnsupportedError

P = ParamSpec("P")
FINE, DIFFERS, UNSEEN = 0, 1, 2
PIPED_WIDTH = 160


def looking(command: Callable[P, int]) -> Callable[P, int]:
    """A command that ends with 2 if it could not look."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except (OperationalError, UnsupportedError) as error:
            raise click.ClickException(str(error)) from error

    return wrapped


def console() -> Console:
    """Where tables go; names of tensors are text, not markup. A file or a pipe has room for whole lines."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def shown_bytes(count: int) -> str:
    """A size in the unit that it deserves."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
