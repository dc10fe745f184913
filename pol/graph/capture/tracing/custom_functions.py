"""Functions of one's own with selected rows: torch's engine would lose their gradient, so they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch._functorch.utils as applied

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.selections import has_selected_rows
from pol.graph.capture.tracing.provenance import current_line


@contextmanager
def custom_functions() -> Iterator[None]:
    """While active, `torch.autograd.Function.apply` takes no selected rows: for all threads, as torch's module is one.

    A user may keep `apply` in a name of his own, so it is caught at the function through which it takes arguments.
    """
    own: Callable[..., Any] = applied.unwrap_dead_wrappers

    def arguments(args: tuple[Any, ...]) -> Any:
        if has_selected_rows(args):
            raise UnsupportedError(
                f"{current_line() or 'the step'} -- a torch.autograd.Function takes rows that a mask has selected, "
                "whose number depends on data: apply it to all rows, and select of its result"
            )
        return own(args)

    applied.unwrap_dead_wrappers = arguments
    try:
        yield
    finally:
        applied.unwrap_dead_wrappers = own
