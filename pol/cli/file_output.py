"""What the commands that look at files and records share: exit codes, and where they print.

0: fine. 1: differs, or the evidence is bad. 3: could not look. As every verb: docs/guides/commit.md, "Exit codes".
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from typing import IO, ParamSpec, cast

from rich.console import Console

from pol.errors import OperationalError, UnsupportedError

P = ParamSpec("P")
FINE, DIFFERS, UNSEEN = 0, 1, 3
PIPED_WIDTH = 160
SHOWN_ROWS = 1000
"""Of a table, unless all are asked for: laying one row out takes longer than hashing a small tensor."""


def looking(command: Callable[P, int]) -> Callable[P, int]:
    """A command that could not look if it meets what pol doesn't support: nobody has done anything wrong."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except UnsupportedError as error:
            raise OperationalError(str(error)) from error

    return wrapped


class _Printable(io.TextIOBase):
    """The standard output for what strangers wrote: a control character comes out as its escape, not as a command."""

    def write(self, text: str) -> int:
        shown = (c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
        return sys.stdout.write("".join(shown))

    def flush(self) -> None:
        sys.stdout.flush()

    def isatty(self) -> bool:
        return sys.stdout.isatty()

    def fileno(self) -> int:
        return sys.stdout.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # rich asks for it; io declares an attribute
        return sys.stdout.encoding


def console() -> Console:
    """Where tables go; names of tensors are text, not markup. A file or a pipe has room for whole lines."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(file=cast(IO[str], _Printable()), color_system=None, highlight=False, markup=False, width=width)


def shown_bytes(count: int) -> str:
    """A size in the unit that it deserves."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
