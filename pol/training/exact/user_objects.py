"""Objects of the user that a program has read when it was made, and that no later step reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from pol.graph.capture.guards.plain_values import is_same
from pol.graph.capture.guards.reachable_objects import ABSENT, ReachableObjects


class UserObjects:
    """Everything that model and loss reach besides the model's own tensors, as it is now."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        found = ReachableObjects({"model": model, "loss": loss}, versions=True)
        own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self._objects = found.objects
        self._tensors = [kept for kept in found.tensors if id(kept.tensor) not in own]

    def changed(self) -> Iterator[str]:
        """The names of those that are others now."""
        for record in self._objects:
            now = record.read()
            for name in dict.fromkeys([*record.parts, *now]):
                if not is_same(record.parts.get(name, ABSENT), now.get(name, ABSENT)):
                    yield name
        yield from (kept.name for kept in self._tensors if kept.is_changed)
