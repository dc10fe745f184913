"""What the loaders of a training share while batches are drawn: which are open, and who is asked before a draw."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pol.errors import ProtocolError
from pol.training.state.random_state import RandomSources

OTHER_DATA = "other data"
"""Allows a resumption with batches other than the recorded ones."""


class Draws:
    """The draws from all loaders of a training.

    ``before_draw`` is called before a batch of a loader is drawn, or a new epoch of it begins; its result is called if
    there is a batch. ``arrived`` is called where the loop draws for the first time after the checkpoint.
    """

    def __init__(self, random: RandomSources) -> None:
        self.random = random
        self.open: list[str] = []
        """Loaders whose iteration isn't over, in the order in which they were begun."""
        self.drawing = self.awaited = ""
        self.resumed: int | None = None
        """The epoch that was resumed, until the first step."""
        self.allows_other, self.until_due = False, 1
        self.before_draw: Callable[[str, bool], Callable[[], None] | None] = lambda name, begins: None
        self.arrived: Callable[[], None] = lambda: None
        self.thread = threading.get_ident()

    def arrive(self, name: str) -> bool:
        """A loader is drawn from after a resumption; whether the checkpoint was taken there."""
        if not name or self.awaited != name:
            return False
        self.arrived()
        self.awaited = ""  # loading the state again has set it
        return True

    def ask(self, name: str, begins: bool) -> Callable[[], None]:
        """The loop asks for a batch; the result is called if there is one."""
        if threading.get_ident() != self.thread:
            raise ProtocolError(
                "recorder.batches(...) is drawn from in another thread than the steps are taken in, so nobody can know "
                "which batches are used: give the recorder what the thread makes, as in "
                "recorder.batches(prefetching(loader))"
            )
        self.drawing = name
        try:
            return self.before_draw(name, begins) or (lambda: None)
        finally:
            self.drawing = ""


def cause(sizes: tuple[int | None, int | None], is_placed: bool, number: int, first_again: Callable[[], bytes]) -> str:
    """Why a batch that is drawn again isn't the one of this ``number`` that was used, as far as it can be known.

    sizes: of the loader, then and now. is_placed: a part holds its place. first_again: draws the epoch's first batch.
    """
    before, now = sizes
    if before != now:
        return f"The loader had {before} batches and has {now}: give the recorded data and batch size"
    if is_placed:
        return "It was drawn from the recorded state_dict(), which lacks a part of its place, or from other data"
    if number > 1:
        return (
            "The first one of the epoch is: data behind it has changed, or something draws between batches from a "
            "generator that the recorder can't find. Give that among the parts=, or seed it with the epoch"
        )
    if first_again() == first_again():
        return "Drawn twice it is one batch: give the recorded data, batch size, order and seeds of all generators"
    return (
        "Drawn twice it is two batches: the loader keeps a generator, an order or a place in a stream where the "
        "recorder can't find it. Give that among the parts=, or begin it anew in each epoch"
    )
