"""The places in all loaders of a training; a step belongs to those that it was taken with."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pol.training.state.data_cursor import DataCursor
from pol.training.state.draws import Draws
from pol.training.state.random_state import RandomSources

Batch = TypeVar("Batch")


class DataCursors(Draws):
    """The places in all loaders of a training, by their names.

    A resumed loop enters its epoch where it draws a batch, so a state is taken and restored there.
    """

    def __init__(self, random: RandomSources) -> None:
        super().__init__(random)
        self.loaders: dict[str, DataCursor] = {}
        self.stepped = ""

    @property
    def epoch(self) -> int:
        """The epoch of the loader that the loop goes on with, or that the steps are taken with."""
        cursor = self.loaders.get(self.awaited or self.stepped or next(iter(self.loaders), ""))
        return 0 if cursor is None else cursor.present[0]

    @property
    def has_drawn(self) -> bool:
        """Whether the loop holds a batch with which no step was taken."""
        return any(self.loaders[name].drawn for name in self.open)

    def is_ending(self, name: str) -> bool:
        """Whether loaders that steps were taken with beside this one have no more batches, as in `zip`."""
        return any(self.loaders[other].present[1] == 0 for other in self.loaders[name].beside)

    def state(self) -> dict[str, Any]:
        """The places in a checkpoint. ``at`` is the loader that the loop goes on with, if it is inside of its epoch."""
        halfway = self.stepped if self.stepped and self.loaders[self.stepped].present[1] else ""
        states = {name: cursor.state() for name, cursor in self.loaders.items()}
        return {"at": self.drawing or self.awaited or halfway, "stepped": self.stepped, "loaders": states}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from the places in a checkpoint."""
        self.awaited, self.stepped = state["at"], state["stepped"]
        for name, found in state["loaders"].items():
            self.loaders.setdefault(name, DataCursor(self, name)).load(found)
        self.resumed = self.epoch

    def note_step(self) -> None:
        """A step is over: it was taken with the loader that was begun first of those that aren't over."""
        if self.open:
            self.stepped = self.open[0]
        for name in self.open:
            self.loaders[name].note_step(set(self.open))
        self.awaited, self.resumed = "", None

    def batches(self, loader: Iterable[Batch], name: str = "data", **how: Any) -> Iterator[Batch]:
        """One epoch of a loader, or the rest of the one that a checkpoint left; ``how`` as in `DataCursor.batches`.

        Raises:
            ProtocolError: another loader of this name is in use.
        """
        cursor = self.loaders.setdefault(name, DataCursor(self, name))
        cursor.take(loader)
        made = cursor.batches(loader, **how)
        cursor.given = weakref.ref(made)
        return made
