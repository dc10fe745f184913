"""Functions of torch on selected rows: those that are entered here, and those of each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.selections.row_functions import places_of_rows
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows, Selection, copied, require_unwritten
from pol.graph.capture.tracing.provenance import current_line

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By the name of a function of torch: takes the function and its arguments; NotImplemented for one of each row."""


def of_rows(*names: str) -> Callable[[F], F]:
    """Make the decorated function that of these functions of torch, where an argument has selected rows."""

    def entered(function: F) -> F:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return entered


def has_selected_rows(*values: Any) -> bool:
    """Whether arguments of a function hold selected rows; asked at every call of a trace, so by a plain search."""
    for value in values:
        if isinstance(value, SelectedRows):
            return True
        if isinstance(value, tuple | list) and has_selected_rows(*value):
            return True
        if isinstance(value, dict) and has_selected_rows(*value.values()):
            return True
    return False


def of_selected_rows(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function of torch; raises UnsupportedError if it has no definition for selected rows."""
    try:
        require_unwritten(tree_flatten((args, kwargs))[0])
        function = FUNCTIONS.get(function_name(func), _undefined)
        result = function(func, *args, **kwargs)
        return each_row(func, args, dict(kwargs)) if result is NotImplemented else result
    except UnsupportedError as error:
        if SelectedRows.report is None:
            raise
        SelectedRows.report(error)
    return func(*tree_map(_rows, tuple(args)), **tree_map(_rows, dict(kwargs)))


def _undefined(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _rows(leaf: Any) -> Any:
    return leaf.rows if isinstance(leaf, SelectedRows) else leaf


SelectedRows.run = of_selected_rows


def each_row(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a function of each row."""
    name = function_name(func)
    is_written = name.endswith("_") and not name.endswith("__")
    if is_written and not isinstance(args[0], SelectedRows):
        raise refused(name)
    args, kwargs = same_selection((args, kwargs))
    selected = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, SelectedRows)]
    selection = selected[0].selection
    places = places_of_rows(func, args, kwargs, selection.count)
    if places is None:
        raise refused(name)

    def whole(leaf: Any) -> Any:
        return selection.size if leaf is selection.count else _rows(leaf)

    result = func(*tree_map(whole, tuple(args)), **tree_map(whole, kwargs))
    if is_written or (name.startswith("__i") and name not in {"__invert__", "__index__"}):
        args[0].rows = result
        return args[0]
    leaves, structure = tree_flatten(result)
    return tree_unflatten([_wrapped(*pair, selected) for pair in zip(leaves, places, strict=True)], structure)


def _wrapped(leaf: Any, place: tuple[int, int] | None, selected: Sequence[SelectedRows]) -> Any:
    if place is None:
        return leaf
    (dim, each), selection = place, selected[0].selection
    if each > 1:  # the elements of a row as rows
        wide = selection.mask[:, None].expand(selection.size, each).reshape(-1)
        found = SelectedRows.chosen(leaf, dim, Selection(wide))
        for source in selected:
            copied(found, source)
        return found
    return SelectedRows.of(leaf, dim, selection)


def same_selection(values: Any) -> Any:
    """The values with all selected rows in the places of the first selection: they have as many rows."""
    selected = [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, SelectedRows)]
    first = selected[0].selection
    return tree_map(lambda leaf: leaf.laid_out_as(first) if isinstance(leaf, SelectedRows) else leaf, values)


def function_name(func: Callable[..., Any]) -> str:
    """The name of a function of torch; of a property that of the attribute."""
    name = getattr(func, "__name__", str(func))
    if name == "__get__":
        return str(getattr(func, "__self__", func).__name__)
    return name


def refused(name: str) -> UnsupportedError:
    """The refusal of a function that has no definition for selected rows."""
    return UnsupportedError(
        f"{current_line() or 'the step'} -- {name} takes rows that a mask has selected, whose number depends on "
        "data. Functions of each row, sums, means, extremes, losses and writing back are defined: write others for all "
        "rows, with torch.where(mask, x, 0)"
    )


@of_rows("dtype", "device", "layout", "requires_grad", "is_leaf", "grad_fn", "is_cuda", "is_sparse", "is_meta", "names")
def _attribute(func: Callable[..., Any], tensor: SelectedRows) -> Any:
    return getattr(tensor.rows, function_name(func))


@of_rows("ndim", "dim", "ndimension")
def _rank(_: Callable[..., Any], tensor: SelectedRows) -> int:
    return tensor.rows.dim()


@of_rows("is_floating_point", "is_complex", "is_contiguous", "get_device", "element_size", "is_signed")
def _kind(func: Callable[..., Any], tensor: SelectedRows, *args: Any, **kwargs: Any) -> Any:
    return func(tensor.rows, *args, **kwargs)


@of_rows("shape", "size")
def _shape(_: Callable[..., Any], tensor: SelectedRows, dim: int | None = None) -> Any:
    """The sizes, of which one is the number of selected rows: an int64 scalar."""
    sizes: list[Any] = list(tensor.rows.shape)
    sizes[tensor.dim_of_rows] = tensor.selection.count
    return tuple(sizes) if dim is None else sizes[dim]


@of_rows("numel", "nelement")
def _elements(_: Callable[..., Any], tensor: SelectedRows) -> Tensor:
    return tensor.selection.count * (tensor.rows.numel() // tensor.selection.size)


@of_rows("__len__", "__bool__")
def _no_length(func: Callable[..., Any], *_: Any) -> Any:
    raise UnsupportedError(
        f"{current_line() or 'the step'} -- {function_name(func)} takes rows that a mask has selected, whose number "
        "depends on data: take x.shape[0], a number of the step, and leave a condition out that skips an empty "
        "selection: no rows add and write nothing"
    )


@of_rows("requires_grad_", "retain_grad", "register_hook", "backward", "__iter__", "item", "tolist")
def _no_rows(func: Callable[..., Any], *_: Any, **__: Any) -> Any:
    raise refused(function_name(func))


@of_rows("__int__", "__float__", "__index__", "numpy", "__array__", "__contains__", "unique")
def _no_number(func: Callable[..., Any], *_: Any, **__: Any) -> Any:
    raise refused(function_name(func))


@of_rows("dropout")
def _dropout(
    func: Callable[..., Any], value: SelectedRows, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Zeroes elements by the numbers that torch draws for as many rows as are selected."""
    if not training or p == 0 or not isinstance(value, SelectedRows):
        return value
    if value.dim_of_rows:
        raise refused("dropout")
    kept = functional.dropout(torch.ones_like(value.rows), p)
    kept = kept.index_select(0, value.selection.ranks)
    if inplace:
        value.rows.mul_(kept)
        return value
    return SelectedRows.of(value.rows * kept, 0, value.selection)


@of_rows("rand_like", "randn_like")
def _random(func: Callable[..., Any], value: SelectedRows, **kwargs: Any) -> Any:
    if value.dim_of_rows:
        raise refused(function_name(func))
    numbers = func(value.rows, **kwargs)
    return SelectedRows.of(numbers.index_select(0, value.selection.ranks), 0, value.selection)


@of_rows("linear")
def _linear(func: Callable[..., Any], value: Any, weight: Any, bias: Any = None) -> Any:
    """Without a trial, which would draw a large weight."""
    if has_selected_rows(weight, bias) or value.dim_of_rows == value.rows.dim() - 1:
        return NotImplemented
    return SelectedRows.of(func(value.rows, weight, bias), value.dim_of_rows, value.selection)


@of_rows("cat", "concat", "concatenate")
def _joined(func: Callable[..., Any], tensors: Sequence[Tensor], dim: int = 0, **kwargs: Any) -> Any:
    """Parts one below the other: selected rows, and others."""
    first = next(tensor for tensor in tensors if isinstance(tensor, SelectedRows))
    dim %= first.rows.dim()
    if dim != first.dim_of_rows:
        return NotImplemented
    if any(isinstance(tensor, SelectedRows) and tensor.dim_of_rows != dim for tensor in tensors):
        raise refused("cat")
    rows = [tensor.rows if isinstance(tensor, SelectedRows) else tensor for tensor in tensors]
    masks = [
        tensor.selection.mask if isinstance(tensor, SelectedRows) else torch.ones(tensor.shape[dim], dtype=torch.bool)
        for tensor in tensors
    ]
    return SelectedRows.chosen(func(rows, dim), dim, Selection(torch.cat(masks)))


def bound(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Arguments of a function of torch.nn.functional, by name."""
    named = inspect.signature(func).bind(*args, **kwargs)
    named.apply_defaults()
    return named
