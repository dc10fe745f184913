"""Gradients of replacements, by differentiating them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

_AUTOGRAD = ("AutogradFunctionality", "AutogradOther", "AutogradCPU", "ADInplaceOrView")


def pulled_back(function: Callable[..., Any], gradient: Tensor, *primals: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the primals, from that of the function's result."""
    with ExitStack() as stack:
        # A replacement runs below autograd, which is switched on again here.
        for name in _AUTOGRAD:
            key = getattr(torch._C.DispatchKey, name)
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        stack.enter_context(torch.enable_grad())
        leaves = [primal.detach().requires_grad_() for primal in primals]
        found = torch.autograd.grad(function(*leaves), leaves, gradient, materialize_grads=True)
    return tuple(item.detach() for item in found)


def of_first(forward: Callable[..., Any]) -> Callable[..., Tensor]:
    """The gradient of an operation's first argument; the operation has the other arguments, too."""

    def backward(gradient: Tensor, value: Tensor, *rest: Any, **options: Any) -> Tensor:
        return pulled_back(lambda first: forward(first, *rest, **options), gradient, value)[0]

    return backward
