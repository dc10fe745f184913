"""What torch leaves open or gets wrong: the order among equal numbers, products of int8, and labels of no class.

Training with torch's own kernels takes these results, so that neither parts it from the canonical one. Of equal numbers
topk and sort take the order of places: on processors torch partitions (nth_element), which shuffles equal numbers where
there are more than three, and sorts long rows with vectors, which does, too; on GPUs it selects by radix, with other
results. Products of int8 are exact: on processors with AVX2 but without VNNI, sums of two of them saturate at 16 bits.
For a label of no class torch's ctc_loss reads and writes outside of its memory: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pol.errors import UnsupportedError

_TOPK = torch.ops.aten.topk.default
_SORT = torch.ops.aten.sort.default
_INT_MM = torch.ops.aten._int_mm.default


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


@cache
def _saturates() -> bool:
    """Whether torch's product of int8 matrices is wrong here; it isn't with VNNI, where it is far faster than ours."""
    left, right = torch.full((32, 64), 127, dtype=torch.int8), torch.full((64, 8), 127, dtype=torch.int8)
    return bool((_INT_MM(left, right) != 64 * 127 * 127).any())


def exact_int_mm(left: Tensor, right: Tensor) -> Tensor:
    """The product of int8 matrices, of fewer than 2^38 terms a sum; modulo 2^32."""
    if left.device.type != "cpu" or not _saturates():
        product: Tensor = _INT_MM(left, right)
        return product
    return (left.double() @ right.double()).long().int()


def _checked_ctc(own: Any) -> Callable[..., Any]:
    def ctc_loss(scores: Tensor, targets: Tensor, inputs: Any, texts: Any, *options: Any, **named: Any) -> Any:
        """The loss; UnsupportedError for a label of no class. What is behind a text's length is no label."""
        counts, classes = torch.as_tensor(texts).cpu(), scores.shape[-1]
        is_label = torch.arange(targets.shape[-1]) < (counts[:, None] if targets.dim() > 1 else counts.sum())
        wrong = [label for label in targets.cpu()[is_label].tolist() if not 0 <= label < classes]
        if wrong:
            raise UnsupportedError(
                f"ctc_loss reads label {wrong[0]}, but there are {classes} classes: 0 .. {classes - 1}. Renumber it, "
                "or change the size of the layer"
            )
        return own(scores, targets, inputs, texts, *options, **named)

    return ctc_loss


exact_int_mm._schema = _INT_MM._schema  # type: ignore[attr-defined]  # as operations of torch have one
REPLACED: Mapping[Any, Callable[..., Any]] = {
    _TOPK: stable_topk,
    _SORT: stable_sort,
    _INT_MM: exact_int_mm,
    **{own: _checked_ctc(own) for own in (torch.ops.aten._ctc_loss.default, torch.ops.aten._ctc_loss.Tensor)},
}


class DefinedResults(TorchDispatchMode):
    """While active, topk and sort take equal numbers in the order of their places; products of int8 are exact."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace these operations."""
        return REPLACED.get(func, func)(*args, **(kwargs or {}))
