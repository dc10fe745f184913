"""Batches that a loop draws by hand, behind a resumption: does the loop go on where it was?"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence

from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pol.errors import ProtocolError
from pol.training.exact.exact_step import ExactStep
from pol.training.state.random_state import RandomSources

_WITHOUT_PLACE = (Optimizer, LRScheduler, GradScaler, nn.Module, ExactStep)
CURE = (
    "Draw through recorder.batches(loader); or draw at a step's top what it needs, and go on from recorder.steps; or "
    "keep order and place in a part that changes before recorder.step(), as pol.Values(order=[...], place=0)"
)
ALIKE = 3


class DrawnByHand:
    """Looks at the first steps after a resumption, if they are taken without a loader.

    A place in a part of the user's own is trusted. Else the loop has to ask for `Recorder.steps`, and an order that it
    draws for many steps shows itself: what is drawn up to the first step isn't as much as for each of the next `ALIKE`.
    Where those aren't alike either, as with episodes, it shows nothing.
    """

    def __init__(self, random: RandomSources, parts: Iterable[object]) -> None:
        self._random = random
        self._is_placed = not all(isinstance(part, _WITHOUT_PLACE) for part in parts)
        self._places: list[Sequence[int]] = []
        self.has_asked = False
        """Whether the loop knows how many steps are done."""

    def resume(self) -> None:
        """Steps go on from a checkpoint."""
        self._places, self.has_asked = [] if self._is_placed else [self._random.places()], False

    def note_step(self, number: int, has_loader: bool) -> None:
        """A step is over; a loop that has a loader isn't looked at.

        Raises:
            ProtocolError: nothing has told the loop where it goes on.
        """
        if has_loader or not self._places:
            self._places = []
            return
        if not self.has_asked:
            raise ProtocolError(
                f"step {number} follows a resumption, and the loop has neither drawn its batch through the recorder "
                f"nor asked for recorder.steps, so it begins anew with its data. {CURE}"
            )
        self._places.append(self._random.places())
        if len(self._places) < 2 + ALIKE:
            return
        first, *others = (
            [(after - before) % self._random.WORDS for before, after in zip(*pair, strict=False)]
            for pair in itertools.pairwise(self._places)
        )
        self._places = []
        if first != others[0] and others.count(others[0]) == ALIKE:
            warnings.warn(
                f"between the resumption and step {number - ALIKE} the loop drew other amounts of random numbers than "
                f"for each of the next {ALIKE}. An order that it draws for many steps, as by torch.randperm, "
                f"has begun anew in its middle, and the resumption isn't exact. {CURE}",
                stacklevel=4,
            )
