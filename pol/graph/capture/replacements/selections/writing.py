"""Writing selected rows back, by masks and by places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.selections.functions import has_selected_rows, of_rows, refused, same_selection
from pol.graph.capture.replacements.selections.reading import behind_mask, dimensions, is_mask
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows, selection_of


@of_rows("__setitem__")
def _set_item(_: Callable[..., Any], target: Any, index: Any, value: Any) -> Any:
    if isinstance(target, SelectedRows):
        return _set_in_rows(target, index, value)
    entries = dimensions(target, index)
    if any(is_mask(item) for item in entries):
        found = behind_mask(target, index)
        if found is None or not isinstance(value, SelectedRows):
            raise refused("writing by this mask")
        view, dim, mask = found
        words = value.laid_out_as(selection_of(mask))
        if words.dim_of_rows != dim - (view.dim() - mask.dim() + 1 - words.rows.dim()):
            raise refused("writing by this mask")
        shaped = torch.unflatten(words.rows, words.dim_of_rows, tuple(mask.shape)).to(view.dtype)
        wide = mask.reshape(*mask.shape, *[1] * (view.dim() - dim - mask.dim()))
        view.copy_(torch.where(wide, shaped, view))
        return None
    _put(target, tuple(entries), value)
    return None


def _set_in_rows(target: SelectedRows, index: Any, value: Any) -> None:
    """Writing by a mask that has a flag for each selected row, or elements of each row."""
    if isinstance(index, SelectedRows) and is_mask(index):
        index = index.laid_out_as(target.selection)
        wide = index.rows.reshape(*index.rows.shape, *[1] * (target.rows.dim() - index.rows.dim()))
        if (isinstance(value, Tensor) and value.dim()) or index.dim_of_rows != target.dim_of_rows:
            raise refused("writing by this mask")
        target.rows.copy_(torch.where(wide, value, target.rows))
        return
    entries = dimensions(target.rows, index)
    if has_selected_rows(index) or any(isinstance(item, Tensor) for item in entries) or None in entries:
        raise refused("writing into selected rows")
    if entries[target.dim_of_rows] != slice(None):
        raise refused("writing into selected rows")
    if isinstance(value, SelectedRows):
        value = value.laid_out_as(target.selection).rows
    elif isinstance(value, Tensor) and value.dim():
        raise refused("writing into selected rows")
    target.rows[tuple(entries)] = value


def _put(target: Tensor, entries: tuple[Any, ...], value: Any) -> None:
    """Writes rows to places; those that aren't selected are written behind the tensor's last, and left there."""
    if any(isinstance(item, SelectedRows) and item.rows.dim() != 1 for item in entries):
        raise refused("writing to these places")
    at = next(place for place, item in enumerate(entries) if isinstance(item, SelectedRows))
    selection = entries[at].selection
    axis = sum(item is not None for item in entries[:at])
    if None in entries:
        raise refused("writing to these places")
    size = target.shape[axis]
    where = [item.laid_out_as(selection).rows if isinstance(item, SelectedRows) else item for item in entries]
    where[at] = torch.where(selection.mask, where[at], size)
    longer = torch.cat([target, target.detach().narrow(axis, 0, 1)], axis)
    longer[tuple(where)] = value.laid_out_as(selection).rows.to(target.dtype) if _is_rows(value) else value
    target.copy_(longer.narrow(axis, 0, size))


def _is_rows(value: Any) -> bool:
    return isinstance(value, SelectedRows)


@of_rows("index_add_", "index_add")
def _index_add(func: Callable[..., Any], target: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    if isinstance(target, SelectedRows):
        raise refused(func.__name__)
    index, source = _zeroed(func, index, source)
    return func(target, dim, index, source.to(target.dtype), alpha=alpha)


@of_rows("scatter_add_", "scatter_add")
def _scatter_add(func: Callable[..., Any], target: Any, dim: int, index: Any, src: Any) -> Any:
    if isinstance(target, SelectedRows):
        return NotImplemented
    index, source = _zeroed(func, index, src)
    return func(target, dim, index, source)


def _zeroed(func: Callable[..., Any], index: Any, source: Any) -> tuple[Tensor, Tensor]:
    """Places and what is added to them: zero from rows that aren't selected."""
    if not isinstance(index, SelectedRows):
        raise refused(func.__name__)
    if not isinstance(source, SelectedRows):
        if source.dim() > index.rows.dim() or (source.dim() and source.shape[index.dim_of_rows] != 1):
            raise refused(func.__name__)
        source = SelectedRows.of(source.expand(index.rows.shape), index.dim_of_rows, index.selection)
    index, source = same_selection((index, source))
    return index.rows, source.or_else(0)


@of_rows("index_put_", "index_put")
def _index_put(func: Callable[..., Any], target: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if isinstance(target, SelectedRows):
        raise refused(func.__name__)
    result = target if func.__name__ == "index_put_" else target.clone()
    if not accumulate:
        _put(result, tuple(dimensions(target, tuple(indices))), values)
        return result
    if not isinstance(values, SelectedRows) or any(is_mask(item) for item in indices):
        raise refused(func.__name__)
    indices, values = same_selection((list(indices), values))
    plain = [item.rows if isinstance(item, SelectedRows) else item for item in indices]
    return result.index_put_(plain, values.or_else(0), accumulate=True)


@of_rows("index_copy_", "index_copy", "index_fill_", "index_fill")
def _index_copy(func: Callable[..., Any], target: Any, dim: int, index: Any, source: Any) -> Any:
    if isinstance(target, SelectedRows) or not isinstance(index, SelectedRows):
        raise refused(func.__name__)
    result = target if func.__name__.endswith("_") else target.clone()
    _put(result, tuple([slice(None)] * (dim % target.dim()) + [index]), source)
    return result
