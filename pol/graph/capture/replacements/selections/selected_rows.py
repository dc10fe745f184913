"""Which rows a mask selects, and tensors of selected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils.weak import WeakTensorKeyDictionary

from pol.errors import UnsupportedError
from pol.graph.capture.tracing.provenance import current_line
from pol.graph.capture.tracing.second_run import RUN
from pol.graph.refusals import Report

_MADE: MutableMapping[Tensor, tuple[Any, dict[Any, Selection]]] = WeakTensorKeyDictionary()
"""By mask or number: the trace and what it selects there, so that two tensors of one mask have the same rows."""


class Selection:
    """The rows where `mask`, a tensor of one dimension, is true."""

    def __init__(self, mask: Tensor, shape: Sequence[int] | None = None) -> None:
        self.mask, self.size = mask, mask.shape[0]
        self.shape = tuple(mask.shape) if shape is None else tuple(shape)
        """Of the mask before it was one of rows."""
        self.is_ordered = False
        """Whether the selected rows come first."""

    @cached_property
    def count(self) -> Tensor:
        """The number of selected rows, an int64 scalar."""
        return self.mask.sum()

    @cached_property
    def first(self) -> Tensor:
        """The first selected row, or the last of all if none is: one index."""
        rows = torch.where(self.mask, torch.arange(self.size), self.size - 1)
        return rows.amin(0, keepdim=True)

    @cached_property
    def ranks(self) -> Tensor:
        """For each selected row, how many are before it; 0 for the others."""
        return torch.where(self.mask, self.mask.to(torch.int64).cumsum(0) - 1, 0)

    @cached_property
    def order(self) -> Tensor:
        """The rows in the order in which torch gives them: first those that are selected."""
        others = self.count + (~self.mask).to(torch.int64).cumsum(0) - 1
        places = torch.where(self.mask, self.ranks, others).clamp(0, self.size - 1)
        return torch.zeros_like(places).scatter(0, places, torch.arange(self.size))

    def wide(self, rank: int, dim: int) -> Tensor:
        """The mask for tensors of this rank, whose dimension `dim` holds the rows."""
        return self.mask.reshape([-1 if axis == dim else 1 for axis in range(rank)])

    def number(self) -> Tensor:
        """The number of selected rows as float32."""
        return self.count.to(torch.float32)


def first_rows(size: int, count: Tensor) -> Selection:
    """The first `count` of rows: the same for the same count."""

    def made() -> Selection:
        found = Selection(torch.arange(size) < count)
        found.is_ordered = True
        return found

    return _once(count, ("first", size), made)


def selection_of(mask: Tensor) -> Selection:
    """The selection of a mask of any shape, in the order of its elements: the same for the same mask."""
    return _once(mask, ("mask", mask._version), lambda: Selection(mask.reshape(-1).clone(), mask.shape))


def _once(tensor: Tensor, key: Any, made: Callable[[], Selection]) -> Selection:
    """What was made of the tensor in this trace, or is made now."""
    mode = get_proxy_mode()
    trace = RUN.get() if mode is None else mode.tracer
    known, found = _MADE.get(tensor, (None, {}))
    if known is None or known is not trace:
        found = {}
        _MADE[tensor] = (trace, found)
    if key not in found:
        found[key] = made()
    return found[key]


class SelectedRows(Tensor):
    """A tensor whose dimension `dim` has the selected ones of `rows`. The others repeat the first that is selected.

    So a function of each row does for the others as it does for a selected one: it meets no logarithm of zero that the
    mask was to avoid, and its gradient there is a product with zero.
    """

    run: ClassVar[Callable[..., Any]]
    """What runs functions of selected rows; `functions` enters it."""
    report: ClassVar[Report | None] = None
    """Takes refusals, where a check goes on behind them with all rows."""
    rows: Tensor
    dim_of_rows: int
    selection: Selection

    @staticmethod
    def of(rows: Tensor, dim: int, selection: Selection) -> SelectedRows:
        """Selected rows; those that aren't selected repeat the first one already."""
        made = Tensor._make_subclass(SelectedRows, _NOTHING)
        made.rows, made.dim_of_rows, made.selection = rows, dim, selection
        return made

    @staticmethod
    def chosen(rows: Tensor, dim: int, selection: Selection) -> SelectedRows:
        """The selected ones of all rows."""
        mask = selection.wide(rows.dim(), dim)
        return SelectedRows.of(
            torch.where(mask, rows, rows.detach().index_select(dim, selection.first)), dim, selection
        )

    def or_else(self, value: Any) -> Tensor:
        """All rows, with a value in place of those that aren't selected."""
        return torch.where(self.wide_mask(), self.rows, value)

    def wide_mask(self) -> Tensor:
        """Which rows are selected, for a choice among the elements."""
        return self.selection.wide(self.rows.dim(), self.dim_of_rows)

    def in_order(self) -> SelectedRows:
        """The same rows, the selected ones first."""
        if self.selection.is_ordered:
            return self
        first = first_rows(self.selection.size, self.selection.count)
        order = torch.where(first.mask, self.selection.order, self.selection.first)
        return SelectedRows.of(self.rows.index_select(self.dim_of_rows, order), self.dim_of_rows, first)

    def laid_out_as(self, selection: Selection) -> SelectedRows:
        """The same rows in the places of another selection of as many rows."""
        if selection is self.selection:
            return self
        ranks = selection.ranks.clamp(max=self.selection.size - 1)
        places = self.selection.order.index_select(0, ranks)
        return SelectedRows.of(self.rows.index_select(self.dim_of_rows, places), self.dim_of_rows, selection)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The function of selected rows."""
        return cls.run(func, args, kwargs or {})


_NOTHING = torch.empty(0)


_COPIED: MutableMapping[Tensor, list[list[tuple[Tensor, int]]]] = WeakTensorKeyDictionary()
"""By the tensor that owns the memory: pairs of a tensor and its copy, with their versions when it was made."""


def copied(copy: Tensor, source: SelectedRows) -> None:
    """Remember that torch has a view of the source where the program has a copy."""
    pair = [(tensor, tensor._version) for tensor in (_rows(copy), source.rows)]
    for tensor, _ in pair:
        _COPIED.setdefault(_owner(tensor), []).append(pair)


def require_unwritten(leaves: Iterable[object]) -> None:
    """Raises UnsupportedError if such a copy of selected rows, or its source, was written to since it was made."""
    for leaf in leaves:
        if isinstance(leaf, SelectedRows):
            for pair in _COPIED.get(_owner(leaf.rows), []):
                if any(tensor._version != version for tensor, version in pair):
                    raise UnsupportedError(
                        f"{current_line() or 'the step'} -- selected rows, or a view of them (a slice, a row, another "
                        "shape), were changed in place. Change them without writing: rows = rows * 2"
                    )


def _rows(tensor: Tensor) -> Tensor:
    return tensor.rows if isinstance(tensor, SelectedRows) else tensor


def _owner(tensor: Tensor) -> Tensor:
    return tensor if tensor._base is None else tensor._base
