"""Tensors that numbers of the code determine: they become constants of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.replacements.table import replaces


def _constant(operation: Any) -> Callable[..., Tensor]:
    """The numbers that torch's own kernel gives."""

    def created(*arguments: Any, **options: Any) -> Tensor:
        with _disable_current_modes():
            tensor: Tensor = operation(*arguments, **{**options, "device": "cpu", "layout": None, "pin_memory": None})
        return tensor

    return created


_WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
for _name in (
    *("linspace.default", "logspace.default", "tril_indices.default", "triu_indices.default"),
    *("fft_fftfreq.default", "fft_rfftfreq.default"),
    *(f"{window}.{overload}" for window in _WINDOWS for overload in ("default", "periodic")),
):
    _packet, _overload = _name.split(".")
    replaces(_name)(_constant(getattr(getattr(torch.ops.aten, _packet), _overload)))
