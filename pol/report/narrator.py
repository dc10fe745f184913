"""Narration of long commands: text and progress for people, nothing for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

Advance = Callable[[int, int], None]
"""``advance(done, total)``"""


class Narrator(Protocol):
    """Receives the narration of a command."""

    def chapter(self, title: str) -> None:
        """Begin a new chapter."""
        ...

    def say(self, text: str) -> None:
        """Add a paragraph."""
        ...

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        ...

    @contextmanager
    def progress(self, label: str) -> Iterator[Advance]:
        """Show progress while the block runs."""
        ...


class ConsoleNarrator:
    """Narrates on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapters = 0

    def chapter(self, title: str) -> None:
        """A numbered heading."""
        self._chapters += 1
        self._console.print(f"\n[bold]{self._chapters}. {title}[/bold]")

    def say(self, text: str) -> None:
        """A paragraph."""
        self._console.print(Padding(text, (0, 0, 0, 3)), highlight=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; the first column is text, the others are numbers."""
        table = Table(title=title, title_justify="left")
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    @contextmanager
    def progress(self, label: str) -> Iterator[Advance]:
        """A bar while it runs, nothing afterwards."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True) as bar:
            task = bar.add_task(f"   {label}", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
