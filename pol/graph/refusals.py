"""What becomes of a refusal: it is raised, or reported so that the work goes on and finds others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from pol.errors import UnsupportedError

Report: TypeAlias = Callable[[UnsupportedError], None]
"""Takes a refusal. Work goes on if it returns, with a stand-in for what was refused."""


def refuse(error: UnsupportedError) -> NoReturn:
    """Raise the refusal."""
    raise error


@dataclass(frozen=True)
class Refusal:
    """One thing that a capture refuses: the place in the user's code ("file.py:12: code"), the way out, how often."""

    operation: str
    line: str
    way_out: str
    times: int


class Refusals:
    """Collects refusals; call it as a `Report`."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, error: UnsupportedError) -> None:
        """Take one."""
        self._counts[str(error)] += 1

    def __bool__(self) -> bool:
        return bool(self._counts)

    def list(self) -> list[Refusal]:
        """Each one once, in the order in which they were found."""
        return [_parsed(message, times) for message, times in self._counts.items()]


def _parsed(message: str, times: int) -> Refusal:
    """A message is "line -- operation: way out", where the line may be missing."""
    line, separator, rest = message.partition(" -- ")
    if not separator:
        line, rest = "", message
    operation, _, way_out = rest.partition(": ")
    return Refusal(operation, line, way_out, times)
