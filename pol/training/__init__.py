"""Tasks, learning records and proofs. `from pol.training import Recorder` is what a training loop needs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pol.training.recorder.recorder import Recorder
    from pol.training.recorder.recorder_options import Checkpoints, Sealing

__all__ = ["Checkpoints", "Recorder", "Sealing"]

_MODULES = {"Recorder": "recorder", "Checkpoints": "recorder_options", "Sealing": "recorder_options"}


def __getattr__(name: str) -> object:
    # Documents are read without torch, so nothing is imported before it is asked for.
    if name in _MODULES:
        return getattr(importlib.import_module(f"pol.training.recorder.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
