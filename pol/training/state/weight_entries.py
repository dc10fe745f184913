"""Names of a model's weights in a complete state (docs/spec/complete_state.md, "Components of a trainer")."""

from __future__ import annotations

from collections.abc import Mapping

from pol.commitments.complete_state import StateEntry
from pol.training.state import plain_data

WEIGHTS = ("parameters/", "buffers/")


def entry_of(entries: Mapping[str, StateEntry], name: str) -> StateEntry | None:
    """The entry of the parameter or buffer with this name in its model."""
    found = (entries.get(kind + plain_data.segment(name)) for kind in WEIGHTS)
    return next((entry for entry in found if entry is not None), None)


def name_in_model(entry: str) -> str:
    """The name that a parameter or buffer has in its model."""
    return entry.partition("/")[2].replace("%2F", "/").replace("%25", "%")
