"""Tasks, learning records and proofs. `from pol.training import Recorder` is what a training loop needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pol.training.recorder.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> object:
    # Whoever only reads documents needs no torch.
    if name == "Recorder":
        from pol.training.recorder.recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
