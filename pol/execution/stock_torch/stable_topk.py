"""Order among equal numbers: torch leaves open which of them topk takes, the definition takes the first places.

On processors torch partitions (nth_element), which shuffles equal numbers where there are more than three; on GPUs it
selects by radix, with other results. Training with torch's own kernels takes the stable order, so that ties don't part
it from the canonical one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_TOPK = torch.ops.aten.topk.default


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


class StableOrder(TorchDispatchMode):
    """While active, topk takes equal numbers in the order of their places."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace the one operation."""
        return (stable_topk if func is _TOPK else func)(*args, **(kwargs or {}))
