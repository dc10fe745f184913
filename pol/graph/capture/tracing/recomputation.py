"""Reentrant gradient checkpoints under a trace, which takes gradients of named tensors.

torch refuses `use_reentrant=True` there. The other kind computes the same gradients, but for one thing: where no input
of a reentrant checkpoint requires a gradient, its parameters get none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils import checkpoint


class _OtherKind:
    """Stands in for torch's CheckpointFunction."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve: bool, *inputs: Any) -> Any:
        """The function's result, recomputed in the backward pass without reentrance."""
        if not any(isinstance(item, Tensor) and item.requires_grad for item in inputs):
            with torch.no_grad():
                return function(*inputs)
        return checkpoint.checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=preserve)


@contextmanager
def recomputation() -> Iterator[None]:
    """While active, reentrant checkpoints are of the other kind: for all threads, as torch's module is one."""
    own = checkpoint.CheckpointFunction
    checkpoint.CheckpointFunction = _OtherKind  # type: ignore[misc, assignment]  # its one method that is called
    try:
        yield
    finally:
        checkpoint.CheckpointFunction = own  # type: ignore[misc]  # as before
