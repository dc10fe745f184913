"""Reductions over selected rows: the others count as the number that changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.selections.functions import of_rows, refused, same_selection
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows

_NOTHING: dict[str, float] = {
    **dict.fromkeys(("sum", "nansum", "norm", "vector_norm", "count_nonzero", "any"), 0),
    **dict.fromkeys(("prod", "all"), 1),
    **dict.fromkeys(("amax", "max", "logsumexp"), -torch.inf),
    **dict.fromkeys(("amin", "min"), torch.inf),
}
"""By the name of a reduction: what it may take besides without another result."""


def reduced_axes(value: SelectedRows, dim: Any) -> list[int]:
    """The axes of a reduction over `dim`: None or none is all."""
    rank = value.rows.dim()
    if dim is None or dim in ((), []):
        return list(range(rank))
    return [axis % rank for axis in (dim if isinstance(dim, tuple | list) else (dim,))]


def _argument(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any], place: int = 0) -> Any:
    if "dim" in kwargs or "axis" in kwargs:
        return kwargs.get("dim", kwargs.get("axis"))
    return args[place] if len(args) > place else None


@of_rows(*_NOTHING)
def _reduction(func: Callable[..., Any], value: Any, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    place = 1 if name in {"norm", "vector_norm"} else 0
    dim = _argument(value, args, kwargs, place)
    if place and not float(_argument_of_norm(args, kwargs)) >= 0:
        raise refused(name)  # zeros would count
    if isinstance(dim, Tensor) or kwargs.get("other") is not None:
        return NotImplemented  # the greater of two
    if value.dim_of_rows not in reduced_axes(value, dim):
        return NotImplemented
    if dim is not None and name in {"max", "min"}:
        raise refused(name)  # with places among the selected rows
    return func(value.or_else(_neutral(name, value.rows.dtype)), *args, **kwargs)


def _argument_of_norm(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    order = kwargs.get("p", kwargs.get("ord", args[0] if args else 2))
    return order if isinstance(order, int | float) else 2  # "fro"


def _neutral(name: str, dtype: torch.dtype) -> Any:
    number = _NOTHING[name]
    if dtype is torch.bool:
        return bool(number > 0)
    if dtype.is_floating_point or number in (0, 1):
        return number
    bounds = torch.iinfo(torch.int32 if dtype is torch.int64 else dtype)
    return bounds.min if number < 0 else bounds.max


@of_rows("mean")
def mean(func: Callable[..., Any], value: SelectedRows, *args: Any, **kwargs: Any) -> Any:
    """The sum by the number of selected elements; of none it is NaN."""
    axes = reduced_axes(value, _argument(value, args, kwargs))
    if value.dim_of_rows not in axes:
        return NotImplemented
    keepdim = kwargs.get("keepdim", args[1] if len(args) > 1 else False)
    total = value.or_else(0).sum(axes, keepdim=keepdim, dtype=kwargs.get("dtype"))
    return total / elements(value, axes).to(total.dtype)


def elements(value: SelectedRows, axes: list[int]) -> Tensor:
    """How many selected elements these axes have, as float32."""
    return value.selection.number() * prod(value.rows.shape[axis] for axis in axes if axis != value.dim_of_rows)


@of_rows("var", "std")
def _variance(func: Callable[..., Any], value: SelectedRows, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    if isinstance(dim, bool):
        kwargs["unbiased"], dim = dim, None
    axes = reduced_axes(value, dim)
    if value.dim_of_rows not in axes:
        return NotImplemented
    if args:
        raise refused(func.__name__)
    correction = kwargs.get("correction", 1 if kwargs.get("unbiased", True) else 0)
    count = elements(value, axes)
    average = value.or_else(0).sum(axes, keepdim=True) / count
    squares = torch.where(value.wide_mask(), (value.rows - average) ** 2, 0).sum(axes, kwargs.get("keepdim", False))
    result = squares / (count - correction)
    return result.sqrt() if func.__name__ == "std" else result


@of_rows("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "einsum", "inner", "tensordot", "vdot")
def _product(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Sums of products over the rows; a function of each row where another dimension is summed."""
    args = same_selection(args)
    flat = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else args
    selected = [item for item in flat if isinstance(item, SelectedRows)]
    if not selected or not _sums_rows(func, flat):
        return NotImplemented
    zeroed = [item.or_else(0) if isinstance(item, SelectedRows) else item for item in flat]
    return func(args[0], *zeroed) if func is torch.einsum and flat is not args else func(*zeroed, **kwargs)


def _sums_rows(func: Callable[..., Any], operands: Any) -> bool:
    if func is torch.einsum:
        text, *tensors = operands if isinstance(operands[0], str) else (None, *operands)
        if text is None or "." in text:
            return False
        given, _, result = text.replace(" ", "").partition("->")
        letters = [
            names[tensor.dim_of_rows]
            for names, tensor in zip(given.split(","), tensors, strict=True)
            if isinstance(tensor, SelectedRows)
        ]
        return "->" in text and len(set(letters)) == 1 and letters[0] not in result
    left, right = operands[:2]
    if func.__name__ in {"bmm", "tensordot", "inner"} or not (
        isinstance(left, SelectedRows) and isinstance(right, SelectedRows)
    ):
        return False
    if func.__name__ == "__rmatmul__":
        left, right = right, left
    return bool(left.dim_of_rows == left.rows.dim() - 1 and right.dim_of_rows == max(right.rows.dim() - 2, 0))
