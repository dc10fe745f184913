"""Order among equal numbers: torch leaves it open in topk and in sort, the definition takes the order of places.

On processors torch partitions (nth_element), which shuffles equal numbers where there are more than three, and sorts
long rows with vectors, which does, too; on GPUs it selects by radix, with other results. Training with torch's own
kernels takes the stable order, so that ties don't part it from the canonical one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_TOPK = torch.ops.aten.topk.default
_SORT = torch.ops.aten.sort.default


def stable_topk(
    numbers: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002  # torch's name
) -> tuple[Tensor, Tensor]:
    """The k greatest (or least) numbers and their places; equal ones in the order of their places, NaN greatest."""
    if not numbers.dim():
        values, places = _TOPK(numbers, k, dim, largest, sorted)
        return values, places
    values, places = torch.sort(numbers, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k).clone(), places.narrow(dim, 0, k).clone()


stable_topk._schema = _TOPK._schema  # type: ignore[attr-defined]  # as operations of torch have one


def stable_sort(numbers: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The numbers in order and their places; equal ones in the order of their places, NaN greatest."""
    values, places = torch.sort(numbers, dim=dim, descending=descending, stable=True)
    return values, places


stable_sort._schema = _SORT._schema  # type: ignore[attr-defined]  # as operations of torch have one
REPLACED: Mapping[Any, Callable[..., tuple[Tensor, Tensor]]] = {_TOPK: stable_topk, _SORT: stable_sort}


class StableOrder(TorchDispatchMode):
    """While active, topk and sort take equal numbers in the order of their places."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace the two operations."""
        return REPLACED.get(func, func)(*args, **(kwargs or {}))
