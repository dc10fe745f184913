"""The gradient of a composition, by differentiating it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def pulled_back(function: Callable[..., Any], gradient: Tensor, *primals: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the primals, from that of the function's result."""
    found: tuple[Tensor, ...] = torch.func.vjp(function, *primals)[1](gradient)
    return found
