"""Gradient checkpoints under a trace, which takes gradients of named tensors.

torch refuses `use_reentrant=True` there. The other kind computes the same gradients, but for one thing: where no input
of a reentrant checkpoint requires a gradient, its parameters get none. What a selective checkpoint would keep is
computed again as well.
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


_CACHES = (checkpoint._CachingTorchDispatchMode, checkpoint._CachedTorchDispatchMode)
"""The contexts of `create_selective_checkpoint_contexts`."""
_OWN_GENERATOR = checkpoint._checkpoint_without_reentrant_generator


def _generator(function: Any, preserve: bool, contexts: Callable[[], Any], *rest: Any, **named: Any) -> Any:
    if contexts is not checkpoint.noop_context_fn and all(type(item) in _CACHES for item in contexts()):
        contexts = checkpoint.noop_context_fn
    return _OWN_GENERATOR(function, preserve, contexts, *rest, **named)


@contextmanager
def recomputation() -> Iterator[None]:
    """While active, checkpoints are of the kind that a trace follows: for all threads, as torch's module is one."""
    own = checkpoint.CheckpointFunction
    checkpoint.CheckpointFunction = _OtherKind  # type: ignore[misc, assignment]  # its one method that is called
    checkpoint._checkpoint_without_reentrant_generator = _generator  # type: ignore[assignment]  # called by position
    try:
        yield
    finally:
        checkpoint.CheckpointFunction = own  # type: ignore[misc]  # as before
        checkpoint._checkpoint_without_reentrant_generator = _OWN_GENERATOR
