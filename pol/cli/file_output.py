"""Shared by commands that read files and records: exit codes, reading and writing of files, the console.

0: fine. 1: differs, or the evidence is bad. 3: could not be checked. 4: equal, and one run is shorter.
docs/guides/commit.md, "Exit codes".
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, ParamSpec, cast

import click
from rich.console import Console

from pol.errors import OperationalError, ProtocolError, UnsupportedError, reason_of

P = ParamSpec("P")
FINE, DIFFERS, UNSEEN, SHORTER = 0, 1, 3, 4
PIPED_WIDTH = 160
SHOWN_ROWS = 1000
"""The most rows of a table without --all: laying out a row takes longer than hashing a small tensor."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def unsupported_is_unseen(command: Callable[P, int]) -> Callable[P, int]:
    """Decorator: an UnsupportedError of the command ends in exit code 3, as it is no bad evidence."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except UnsupportedError as error:
            raise OperationalError(str(error)) from error

    return wrapped


class _Printable(io.TextIOBase):
    """The standard output for untrusted text: control characters are escaped."""

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


def read_file(path: Path, limit: int | None = None, hint: str = "") -> bytes:
    """The content of a file."""
    try:
        if limit is not None and path.stat().st_size > limit:
            raise ProtocolError(f"{path} has more than {limit} bytes: no document of pol has")
        return path.read_bytes()
    except OSError as error:
        raise OperationalError(f"can't read {path}: {reason_of(error)}{hint}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file; OperationalError if that fails."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OperationalError(f"can't write {path}: {reason_of(error)}") from error


def console() -> Console:
    """The console for tables; names of tensors are text, not markup. A file or a pipe gets whole lines."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(file=cast(IO[str], _Printable()), color_system=None, highlight=False, markup=False, width=width)


def shown_bytes(count: int) -> str:
    """A size in the largest unit that leaves at least 1."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
