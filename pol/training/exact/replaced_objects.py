"""The user's objects with other calls and steps, for as long as a loop runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import LRScheduler

ABSENT = object()


class ReplacedObjects:
    """Attributes of single objects, and the step of a scheduler, that are replaced for a while."""

    def __init__(self) -> None:
        self._entries: list[tuple[dict[str, Any], str, object]] = []
        self._own: list[object] = []
        self._scheduler: tuple[LRScheduler, type[LRScheduler], type[LRScheduler]] | None = None

    def add(self, owner: object, name: str, value: object) -> None:
        """One more attribute."""
        self._entries.append((vars(owner), name, value))

    def add_scheduler(self, scheduler: LRScheduler, step: Callable[..., object]) -> None:
        """Another step of this scheduler; by its class, as an attribute would be part of its state_dict()."""
        kind = type(scheduler)

        def step_of(this: LRScheduler, *given: Any, **named: Any) -> None:
            if this is scheduler:
                step(*given, **named)
            else:  # a copy that was made in another way
                kind.step(this, *given, **named)

        def reduced(this: LRScheduler, protocol: int) -> Any:
            """Copies and pickles are of the user's own class, which only the oldest form of pickles can name."""
            found = kind.__reduce_ex__(this, 0)
            if isinstance(found, str):
                return found
            return (found[0], tuple(kind if item is type(this) else item for item in found[1]), *found[2:])

        other = type(kind.__name__, (kind,), {"step": step_of, "__reduce_ex__": reduced})
        self._scheduler = scheduler, kind, other

    def replace(self) -> None:
        """Set the other values."""
        self._own = [space.get(name, ABSENT) for space, name, _ in self._entries]
        for space, name, value in self._entries:
            space[name] = value
        if self._scheduler is not None:
            scheduler, _, other = self._scheduler
            scheduler.__class__ = other

    def put_back(self) -> None:
        """Set the objects' own values."""
        if self._scheduler is not None:
            scheduler, kind, _ = self._scheduler
            scheduler.__class__ = kind
        for (space, name, _), own in zip(self._entries, self._own, strict=True):
            if own is ABSENT:
                space.pop(name, None)
            else:
                space[name] = own
