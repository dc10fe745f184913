"""Functions of each row: found by running them on small numbers with more and with fewer rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

from pol.graph.capture.replacements.selections.selected_rows import SelectedRows

_ROWS, _FEWER = 5, 3
_INTEGERS = ((0, 2), (1, 3), (0, 1))
"""Ranges of integers to try: indices of small and of other dimensions, and divisors."""


def places_of_rows(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], count: Tensor | None
) -> list[tuple[int, int] | None] | None:
    """For each tensor of the result the dimension of the rows, and how many of its elements a row has there.

    None for a result that is no tensor of rows. None altogether if the function isn't one of each row: its results for
    the first and for the last rows have to be those of all rows. `count` stands for the number of rows among the
    arguments.
    """
    for low, high in _INTEGERS:
        try:
            return _compared(func, args, kwargs, count, low, high)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
    return None


def _compared(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], count: Tensor | None, low: int, high: int
) -> list[tuple[int, int] | None] | None:
    found: list[tuple[int, int] | None] | None = None
    with _disable_current_modes(), torch.no_grad():
        for seed in range(2):
            numbers = _Numbers(count, low, high, seed)
            whole, beginning, end = (
                numbers.run(func, args, kwargs, start, rows)
                for start, rows in ((0, _ROWS), (0, _FEWER), (_ROWS - _FEWER, _FEWER))
            )
            if not len(whole) == len(beginning) == len(end):
                return None
            places: list[tuple[int, int] | None] = []
            for results in zip(whole, beginning, end, strict=True):
                if not _are_rows(*results):
                    return None
                places.append(_place(results[0], results[1]))
            if found not in (None, places):
                return None
            found = places
    return found


class _Numbers:
    """Small arguments in place of the real ones."""

    def __init__(self, count: Tensor | None, low: int, high: int, seed: int) -> None:
        self._count, self._low, self._high = count, low, high
        self._generator = torch.Generator().manual_seed(seed)
        self._drawn: dict[int, Tensor] = {}

    def run(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], start: int, rows: int
    ) -> list[Any]:
        """What the function gives for these rows."""

        def number(leaf: Any) -> Any:
            if self._count is not None and leaf is self._count:
                return rows
            if not isinstance(leaf, Tensor):
                return leaf
            if id(leaf) not in self._drawn:
                self._drawn[id(leaf)] = _drawn(leaf, self._low, self._high, self._generator)
            found = self._drawn[id(leaf)]
            return (found.narrow(leaf.dim_of_rows, start, rows) if isinstance(leaf, SelectedRows) else found).clone()

        return tree_flatten(func(*tree_map(number, tuple(args)), **tree_map(number, kwargs)))[0]


def _drawn(leaf: Tensor, low: int, high: int, generator: torch.Generator) -> Tensor:
    if isinstance(leaf, SelectedRows):
        shape = list(leaf.rows.shape)
        shape[leaf.dim_of_rows] = _ROWS
        dtype = leaf.rows.dtype
    else:
        shape, dtype = list(leaf.shape), leaf.dtype
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def _place(whole: Any, beginning: Any) -> tuple[int, int] | None:
    """Which dimension of a result has the rows, and how many elements of it each row has."""
    if not isinstance(whole, Tensor):
        return None
    changed = [axis for axis, size in enumerate(whole.shape) if size != beginning.shape[axis]]
    return (changed[0], whole.shape[changed[0]] // _ROWS) if len(changed) == 1 else None


def _are_rows(whole: Any, beginning: Any, end: Any) -> bool:
    """Whether the result for fewer rows is a part of that for all."""
    if not isinstance(whole, Tensor):
        return bool(whole == beginning == end)
    place = _place(whole, beginning)
    if place is None:
        return False
    axis, each = place
    if whole.shape[axis] != each * _ROWS or beginning.shape[axis] != each * _FEWER or (each > 1 and axis > 0):
        return False
    first = whole.narrow(axis, 0, each * _FEWER)
    last = whole.narrow(axis, each * (_ROWS - _FEWER), each * _FEWER)
    return _equal(first, beginning) and _equal(last, end)


def _equal(left: Tensor, right: Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.is_floating_point() or left.is_complex():
        return torch.allclose(left, right, rtol=1e-3, atol=1e-4, equal_nan=True)
    return torch.equal(left, right)
