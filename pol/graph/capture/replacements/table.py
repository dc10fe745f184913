"""The tables of replacements: `@replaces(operations)` enters a function that computes them with other operations."""

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
EXACT: set[Any] = set()
"""Operations whose replacements give torch's own bits."""
FUNCTIONS: dict[Any, Replacement] = {}
"""By function of torch, where its own code reads numbers of tensors: what a trace runs in its place."""


def replaces(*operations: str, exact: bool = False) -> Callable[[F], F]:
    """Make the decorated function the replacement of ATen operations such as "tan.default"."""

    def entered(replacement: F) -> F:
        for operation in operations:
            name, overload = operation.split(".")
            target = getattr(getattr(torch.ops.aten, name), overload)
            if target in REPLACEMENTS:
                raise AssertionError(f"{operation} has two replacements")
            REPLACEMENTS[target] = replacement
            if exact:
                EXACT.add(target)
        return replacement

    return entered


def replaces_function(*functions: Any) -> Callable[[F], F]:
    """Make the decorated function the replacement of functions such as torch.quantile, before gradients are taken."""

    def entered(replacement: F) -> F:
        FUNCTIONS.update(dict.fromkeys(functions, replacement))
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
