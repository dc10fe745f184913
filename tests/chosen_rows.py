"""Which rows of a table run by default, and which in another tier; none is left out."""

from collections.abc import Iterable
from typing import Any

import pytest


def named(rows: Iterable[Any], *names: str, others: pytest.MarkDecorator) -> list[Any]:
    """Parameters of a test: the rows with these names by default, the others with a mark."""
    found = list(rows)
    unknown = set(names) - set(map(_name, found))
    assert not unknown, f"no row is named {sorted(unknown)}"
    return [row if _name(row) in names else _marked(row, others) for row in found]


def first(rows: Iterable[Any], count: int, others: pytest.MarkDecorator) -> list[Any]:
    """As `named`, the first rows."""
    return [row if place < count else _marked(row, others) for place, row in enumerate(rows)]


def each(rows: Iterable[Any], step: int, others: pytest.MarkDecorator) -> list[Any]:
    """As `named`, one row of so many."""
    return [row if place % step == 0 else _marked(row, others) for place, row in enumerate(rows)]


def together(names: Iterable[str], size: int, alone: pytest.MarkDecorator) -> list[Any]:
    """Parameters of a test that takes several rows at once: groups by default, each row by itself with a mark."""
    rows = list(names)
    groups = [rows[place : place + size] for place in range(0, len(rows), size)]
    return [
        *(pytest.param(group, id=f"{group[0]} to {group[-1]}") for group in groups),
        *(pytest.param([row], id=row, marks=alone) for row in rows),
    ]


def _name(row: Any) -> str:
    return row if isinstance(row, str) else str(getattr(row, "__name__", row))


def _marked(row: Any, mark: pytest.MarkDecorator) -> Any:
    """A tuple holds the values of several parameters."""
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=mark)
