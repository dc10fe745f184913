"""Reading by masks and by their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.replacements.selections.functions import has_selected_rows, of_rows, of_selected_rows, refused
from pol.graph.capture.replacements.selections.selected_rows import (
    SelectedRows,
    Selection,
    copied,
    first_rows,
    selection_of,
)
from pol.graph.capture.replacements.table import replaces_function
from pol.graph.capture.tracing.second_run import RUN

_PLACES = "pol.places"
"""The answers for a mask, kept at its node for the second run."""
_LARGEST = 1 << 24
"""Elements of a tensor that is computed here."""


class _Known:
    """The values of the nodes of a graph that depend on no placeholder and draw nothing."""

    def __init__(self) -> None:
        self.values: dict[fx.Node, Any] = {}
        self.last: fx.Node | None = None
        self.spoiled: set[int] = set()


_GRAPHS: WeakKeyDictionary[fx.Graph, _Known] = WeakKeyDictionary()


def known_places(mask: Tensor) -> list[int] | None:
    """Where a traced mask is true, in the order of its elements, or None if that depends on the step."""
    mode, run = get_proxy_mode(), RUN.get()
    if mode is None and run is None:
        return None
    if not isinstance(mask, FakeTensor):  # a constant of the user's code
        with _disable_current_modes():
            constant: list[int] = mask.flatten().nonzero().flatten().tolist()
            return constant
    if mode is None:
        known = None if run is None else run.node_of(mask)
        answers: list[list[int] | None] = [] if known is None else known.meta.get(_PLACES, [])
        return answers.pop(0) if answers else None
    slot = get_proxy_slot(mask, mode.tracer, None)
    if slot is None:
        return None
    node = slot.proxy.node
    state = _GRAPHS.setdefault(node.graph, _Known())
    with _disable_current_modes(), torch.no_grad():
        _advance(state, node.graph, getattr(mode.tracer, "root", None))
        found, places = state.values.get(node), None
        if isinstance(found, Tensor) and _memory(found) not in state.spoiled:
            places = found.flatten().nonzero().flatten().tolist()
        node.meta.setdefault(_PLACES, []).append(places)
        return places


def _advance(state: _Known, graph: fx.Graph, root: Any) -> None:
    """Compute what was traced since the last time, in order, so that writes in place are seen."""
    started = state.last is None
    for node in graph.nodes:
        if started:
            _compute(state, node, root)
            state.last = node
        elif node is state.last:
            started = True


def _compute(state: _Known, node: fx.Node, root: Any) -> None:
    if node.op == "get_attr":
        constant = getattr(root, str(node.target), None)
        if isinstance(constant, Tensor) and constant.numel() <= _LARGEST:
            state.values[node] = constant.detach().clone()
        return
    if node.op != "call_function":
        return
    inputs = node.all_input_nodes
    schema = getattr(node.target, "_schema", None)
    fake = node.meta.get("val")
    tags = getattr(node.target, "tags", ())
    is_known = (
        all(item in state.values for item in inputs)
        and torch.Tag.nondeterministic_seeded not in tags
        and not (isinstance(fake, Tensor) and fake.numel() > _LARGEST)
    )
    if is_known:
        try:
            arguments = fx.node.map_arg((node.args, node.kwargs), state.values.__getitem__)
            state.values[node] = node.target(*arguments[0], **arguments[1])  # type: ignore[operator]  # a function
        except (RuntimeError, IndexError, ValueError, TypeError):
            is_known = False
    if not is_known and schema is not None and schema.is_mutable:
        state.spoiled.update(_memory(state.values[item]) for item in inputs if _is_tensor(state.values.get(item)))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def is_mask(item: object) -> bool:
    """Whether an index is a tensor of booleans."""
    return isinstance(item, Tensor) and item.dtype is torch.bool


def dimensions(target: Tensor, index: Any) -> list[Any]:
    """An index as one entry for each dimension, None for a new one, and a mask for as many as it has."""
    entries = list(index) if isinstance(index, tuple) else [index]
    taken = sum(item.dim() if is_mask(item) else 0 if item is None else 1 for item in entries if item is not Ellipsis)
    rest = [slice(None)] * (target.dim() - taken)
    at = next((place for place, item in enumerate(entries) if item is Ellipsis), None)
    return entries + rest if at is None else entries[:at] + rest + entries[at + 1 :]


def behind_mask(target: Tensor, index: Any) -> tuple[Tensor, int, Tensor] | None:
    """The elements among which the one mask of an index selects, the first dimension of the mask, and the mask."""
    entries = dimensions(target, index)
    masks = [item for item in entries if is_mask(item)]
    plain = all(is_mask(item) or item is None or type(item) in (int, slice) for item in entries)
    if len(masks) != 1 or not plain or isinstance(masks[0], SelectedRows) or not masks[0].dim():
        return None
    at = next(place for place, item in enumerate(entries) if is_mask(item))
    others = [*entries[:at], *[slice(None)] * masks[0].dim(), *entries[at + 1 :]]
    view = target if all(item == slice(None) for item in others) else target[tuple(others)]
    return view, sum(type(item) is not int for item in entries[:at]), masks[0]


@replaces_function(Tensor.__getitem__)
def _item(target: Tensor, index: Any) -> Any:
    entries = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, slice) and isinstance(item.stop, Tensor) for item in entries):
        return _first_of_all(target, dimensions(target, index))
    if not any(is_mask(item) and item.dim() for item in entries if isinstance(item, Tensor)):
        return NotImplemented
    found = behind_mask(target, index)
    if found is None:
        return _by_places(target, index)
    view, dim, mask = found
    if tuple(mask.shape) != tuple(view.shape[dim : dim + mask.dim()]):
        return NotImplemented  # torch's own message
    rows = view.flatten(dim, dim + mask.dim() - 1)
    if (found_places := known_places(mask)) is not None:
        return rows.index_select(dim, torch.tensor(found_places, dtype=torch.int64))
    return SelectedRows.chosen(rows, dim, selection_of(mask))


def _first_of_all(target: Tensor, entries: list[Any]) -> Any:
    """As many rows as a number of the step says, `labels[:, : outputs.size(1)]`."""
    at = next(place for place, item in enumerate(entries) if isinstance(item, slice) and isinstance(item.stop, Tensor))
    plain = all(item is None or type(item) is int or isinstance(item, slice) for item in entries)
    part = entries[at]
    if not plain or part.start not in (None, 0) or part.step not in (None, 1):
        return NotImplemented
    view = target[(*entries[:at], slice(None), *entries[at + 1 :])]
    dim = sum(type(item) is not int for item in entries[:at])
    return SelectedRows.chosen(view, dim, first_rows(view.shape[dim], part.stop))


def _by_places(target: Tensor, index: Any) -> Any:
    """A mask among other lists of indices is its places."""
    entries: list[Any] = []
    for item in dimensions(target, index):
        entries += places(item) if is_mask(item) else [item]
    if has_selected_rows(entries):
        return of_selected_rows(Tensor.__getitem__, (target, tuple(entries)), {})
    return target[tuple(entries)]


def places(mask: Tensor) -> list[Tensor]:
    """The indices of the selected elements, for each dimension of the mask."""
    if (chosen := known_places(mask)) is not None:
        return [torch.tensor(axis.tolist()) for axis in np.unravel_index(np.array(chosen, np.int64), mask.shape)]
    selection = selection_of(mask)
    found: list[Tensor] = []
    for axis, size in enumerate(mask.shape):
        shape = [size if place == axis else 1 for place in range(mask.dim())]
        index = torch.arange(size).reshape(shape).expand(mask.shape).reshape(-1)
        found.append(SelectedRows.chosen(index, 0, selection))
    return found


@replaces_function(torch.nonzero, Tensor.nonzero, torch.argwhere, Tensor.argwhere)
def _nonzero(value: Tensor, *, as_tuple: bool = False) -> Any:
    if not value.dim():
        return NotImplemented
    found = places(value if value.dtype is torch.bool else value != 0)
    return tuple(found) if as_tuple else torch.stack(found, 1)


@replaces_function(torch.where)
def _where(condition: Tensor, *args: Any, **kwargs: Any) -> Any:
    return NotImplemented if args or kwargs else _nonzero(condition, as_tuple=True)


@replaces_function(torch.masked_select, Tensor.masked_select)
def _masked_select(value: Tensor, mask: Tensor) -> Any:
    value, mask = torch.broadcast_tensors(value, mask)  # type: ignore[no-untyped-call]  # torch declares no types
    return _item(value, mask)


@replaces_function(torch.bincount, Tensor.bincount)
def _counts(value: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    """For values below the least length, which the check of indices asserts."""
    if not minlength:
        return NotImplemented
    if weights is None:
        return torch.zeros(minlength, dtype=torch.int64).index_add(0, value, torch.ones_like(value, dtype=torch.int64))
    return torch.zeros(minlength, dtype=weights.dtype).index_add(0, value, weights)


@of_rows("nonzero", "where", "argwhere")
def _of_selected(func: Callable[..., Any], value: Any, *args: Any, **kwargs: Any) -> Any:
    if args or (kwargs and "as_tuple" not in kwargs):
        return NotImplemented
    raise refused(func.__name__)


@of_rows("masked_select")
def _select_of_selected(_: Callable[..., Any], value: Any, mask: Any) -> Any:
    if not isinstance(value, SelectedRows) or not isinstance(mask, SelectedRows):
        raise refused("masked_select")
    return value[mask]


@of_rows("__getitem__")
def _item_of_selected(func: Callable[..., Any], target: Any, index: Any) -> Any:
    """Selected ones of the selected rows, one, or the first ones; otherwise a function of each row."""
    entries: Sequence[Any] = index if isinstance(index, tuple) else (index,)
    if any(is_mask(item) for item in entries):
        if len(entries) == 1 and isinstance(target, SelectedRows) and isinstance(index, SelectedRows):
            return _again(target, index)
        if not isinstance(target, SelectedRows):
            return _by_places(target, index) if not any(isinstance(item, SelectedRows) for item in entries) else _no()
        raise refused("a mask as an index")
    if not isinstance(target, SelectedRows) or any(isinstance(item, SelectedRows) for item in entries):
        return NotImplemented
    whole = dimensions(target.rows, index)
    axes = [place for place, item in enumerate(whole) if item is not None]
    at = axes[target.dim_of_rows]
    head = whole[at]
    if isinstance(head, slice) and head != slice(None):
        whole[at] = slice(None)
        return _first(target, head)[tuple(whole)]
    if isinstance(head, slice) or head is None:
        return NotImplemented
    selection, ordered = target.selection, target.in_order().rows
    rank = torch.as_tensor(head)
    rank = torch.where(rank < 0, rank + selection.count, rank).clamp(0, selection.size - 1)
    if isinstance(head, Tensor):
        whole[at] = rank
        return ordered[tuple(whole)]
    del whole[at]
    row = ordered.index_select(target.dim_of_rows, rank.reshape(1)).squeeze(target.dim_of_rows)[tuple(whole)]
    copied(row, target)
    return row


def _no() -> Any:
    raise refused("a mask as an index")


def _again(target: SelectedRows, mask: SelectedRows) -> SelectedRows:
    mask = mask.laid_out_as(target.selection)
    rank = mask.rows.dim()
    if target.dim_of_rows or mask.dim_of_rows or mask.rows.shape != target.rows.shape[:rank]:
        raise refused("a mask as an index")
    chosen = mask.rows & mask.wide_mask()
    cached = getattr(mask, "_again", None)
    if cached is None:
        cached = mask._again = Selection(chosen.reshape(-1))  # type: ignore[attr-defined]  # one selection for a mask
    return SelectedRows.chosen(target.rows.flatten(0, rank - 1), 0, cached)


def _first(target: SelectedRows, part: slice) -> SelectedRows:
    start, stop = part.start or 0, part.stop
    if part.step not in (None, 1) or type(start) is not int or not (stop is None or type(stop) is int):
        raise refused("a slice")
    if start < 0 or (stop is not None and stop < 0):
        raise refused("a slice that counts from the end")
    ordered = target.in_order()
    stop = ordered.selection.size if stop is None else min(stop, ordered.selection.size)
    if start >= stop:
        raise refused("an empty slice")
    rows = ordered.rows.narrow(target.dim_of_rows, start, stop - start)
    found = Selection(ordered.selection.mask[start:stop])
    found.is_ordered = True
    kept = SelectedRows.chosen(rows, target.dim_of_rows, found)
    copied(kept, target)
    return kept
