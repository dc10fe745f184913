"""Goes on where code depends on the numbers of traced tensors, so that a check finds what is refused after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pol.graph.capture.replacements.selections.selected_rows import SelectedRows
from pol.graph.capture.tracing.aten_recorder import data_dependent
from pol.graph.capture.tracing.provenance import current_line
from pol.graph.refusals import Report


class NumberStandIns(TorchFunctionMode):
    """While active, numbers of tensors are 1, masks as indices choose all, and each place is reported."""

    def __init__(self, place: Callable[[], str], report: Report) -> None:
        super().__init__()
        self._place, self._report = place, report

    def __enter__(self) -> Self:
        SelectedRows.report = self._report
        super().__enter__()  # type: ignore[no-untyped-call]  # torch declares no types
        return self

    def __exit__(self, *error: object) -> None:
        SelectedRows.report = None
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch declares no types

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function, or give its stand-in."""
        name = getattr(func, "__name__", "")
        stand_in = _STAND_INS.get(name)
        if stand_in is None or not args or not isinstance(args[0], Tensor) or not stand_in.applies(*args[1:2]):
            return func(*args, **(kwargs or {}))
        self._report(data_dependent(current_line() or self._place(), name))
        return stand_in.make(*args, **(kwargs or {}))


class _StandIn:
    def __init__(self, make: Callable[..., Any], applies: Callable[..., bool] = lambda *_: True) -> None:
        self.make, self.applies = make, applies


def _all_true(tensor: Tensor, mask: Tensor) -> Tensor:
    return tensor.flatten(0, mask.dim() - 1)


def _places(tensor: Tensor, *_: Any, as_tuple: bool = False, **__: Any) -> Any:
    found = torch.zeros(tensor.numel(), tensor.dim(), dtype=torch.int64)
    return found.unbind(1) if as_tuple else found


_STAND_INS: Mapping[str, _StandIn] = {
    "__bool__": _StandIn(lambda tensor: True),
    "__float__": _StandIn(lambda tensor: 1.0),
    "__int__": _StandIn(lambda tensor: 1),
    "__index__": _StandIn(lambda tensor: 1),
    "tolist": _StandIn(lambda tensor: np.ones(tuple(tensor.shape)).tolist()),
    "numpy": _StandIn(lambda tensor, **_: np.ones(tuple(tensor.shape), np.float32)),
    "__array__": _StandIn(lambda tensor, *_, **__: np.ones(tuple(tensor.shape), np.float32)),
    "nonzero": _StandIn(_places),
    "masked_select": _StandIn(_all_true),
    "__getitem__": _StandIn(_all_true, lambda index: isinstance(index, Tensor) and index.dtype == torch.bool),
}
"""By the name of a function of a tensor: what it gives in a check."""
