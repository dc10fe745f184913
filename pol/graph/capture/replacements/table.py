"""The table of replacements: `@replaces(operations)` enters a function that computes them with other operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

Replacement: TypeAlias = Callable[..., Any]
"""Takes the arguments of the operation; NotImplemented leaves the operation as it is."""
F = TypeVar("F", bound=Replacement)

REPLACEMENTS: dict[Any, Replacement] = {}
"""By ATen operation. Neither changes tensors in place nor reads their numbers."""


def replaces(*operations: str) -> Callable[[F], F]:
    """Make the decorated function the replacement of ATen operations such as "tan.default"."""

    def entered(replacement: F) -> F:
        for operation in operations:
            name, overload = operation.split(".")
            REPLACEMENTS[getattr(getattr(torch.ops.aten, name), overload)] = replacement
        return replacement

    return entered


def in_binary32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of float32 tensors for bfloat16 and integers, too: bfloat16 is rounded once, at the end."""

    def wide(*arguments: Any) -> Tensor:
        tensors = [item for item in arguments if isinstance(item, Tensor)]
        result = function(*(item.float() if isinstance(item, Tensor) else item for item in arguments))
        is_short = all(item.dtype == torch.bfloat16 for item in tensors)
        return result.to(torch.bfloat16) if is_short else result

    return wide
