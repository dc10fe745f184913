"""Makes ``tensor.data = value`` visible to a trace, which does not see that torch replaces a tensor's memory.

The value is copied instead. That is the same step unless the memory stays shared with another tensor of the training,
or the type changes: both are refused with the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pol.errors import UnsupportedError
from pol.graph.capture.tracing.provenance import current_line

_DATA = torch.Tensor.data


class DataAssignments(TorchFunctionMode):
    """While active, follows assignments to the attribute ``data`` of tensors."""

    def __init__(self, place: Callable[[], str]) -> None:
        super().__init__()
        self._place = place
        self._owned: set[int] = set()

    def own(self, tensors: Iterable[Tensor]) -> None:
        """Set the tensors of the training: no other tensor may share memory with them."""
        self._owned = {_memory(tensor) for tensor in tensors}

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function; an assignment becomes a copy."""
        if getattr(func, "__name__", "") == "__set__" and getattr(func, "__self__", None) is _DATA:
            return self._assign(args[0], args[1])
        return func(*args, **(kwargs or {}))

    def _assign(self, tensor: Tensor, value: Tensor) -> None:
        if (tensor.shape, tensor.dtype) != (value.shape, value.dtype):
            before, after = (f"{t.dtype} of shape {tuple(t.shape)}".removeprefix("torch.") for t in (tensor, value))
            raise self._refused(f"the assignment to .data makes {after} of {before}: the state keeps its types")
        if _memory(value) in self._owned - {_memory(tensor)}:
            raise self._refused(
                "the assignment to .data shares the memory of another tensor of the model: write "
                "tensor.data = value.clone(), or tensor.copy_(value)"
            )
        with torch.no_grad():
            tensor.copy_(value)

    def _refused(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{current_line() or self._place()} -- {what}")


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
