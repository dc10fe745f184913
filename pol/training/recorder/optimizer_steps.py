"""Which optimizers update the model: one that the recorder doesn't have loses its state in a resumption.

One that is made anew for each step, as for an inner loop, has nothing to lose.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any
from weakref import WeakSet

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from pol.errors import ProtocolError
from pol.training.state.trainer_state import TrainerState

MAX_DEPTH = 3
CURE = (
    "make it once, before the recorder, and give it to the recorder, as optimizer= or in parts=; to begin anew with "
    "it, as in each epoch, clear what it remembers: optimizer.state.clear()"
)


class OptimizerSteps:
    """Looks at every update of the process by torch's optimizers, until `release`."""

    def __init__(self, state: TrainerState) -> None:
        self._state = state
        self._stepped: WeakSet[Optimizer] = WeakSet()
        self._before: WeakSet[Optimizer] = WeakSet()
        self._is_told = False
        _begin()
        _looking.add(self)

    def note(self, optimizer: Optimizer) -> None:
        """It has updated."""
        self._stepped.add(optimizer)

    def require_recorded(self) -> None:
        """A step is over."""
        stepped, self._stepped = list(self._stepped), WeakSet()
        recorded = {id(part) for part in self._state.parts.values()}
        if all(id(one) in recorded for one in stepped):
            return
        known = list(_optimizers(list(self._state.parts.values()), 0))
        shared = {id(held) for optimizer in known for held in (optimizer.param_groups, optimizer.state)}
        covered = {id(tensor) for one in known if any(one is other for other in stepped) for tensor in _updated(one)}
        names = {id(tensor): name for name, tensor in self._state.trainable().items() if id(tensor) not in covered}
        for one in stepped:
            is_within = id(one.param_groups) in shared and (not one.state or id(one.state) in shared)
            if is_within or any(one is other for other in known):
                continue
            if name := next((names[id(tensor)] for tensor in _updated(one) if id(tensor) in names), ""):
                if one in self._before:
                    self._tell(one, name)
                self._before.add(one)

    def _tell(self, optimizer: Optimizer, name: str) -> None:
        kind = type(optimizer).__name__
        said = f"{name} is updated by an optimizer ({kind}) that the recorder doesn't have"
        if optimizer.state:
            raise ProtocolError(f"{said}, so a resumption loses what it remembers: {CURE}")
        if not self._is_told:
            self._is_told = True
            warnings.warn(f"{said}. A resumption isn't exact if its rates change: {CURE}", stacklevel=4)

    def release(self) -> None:
        """Look no more."""
        _looking.discard(self)
        self._stepped = WeakSet()


_looking: WeakSet[OptimizerSteps] = WeakSet()


@cache
def _begin() -> None:
    """One hook, for good: a recorder that the garbage collector took with its hook in an update would break that."""
    register_optimizer_step_post_hook(_note)


def _note(optimizer: Optimizer, _given: Any, _named: Any) -> None:
    for steps in tuple(_looking):
        steps.note(optimizer)


def _updated(optimizer: Optimizer) -> Iterator[Tensor]:
    return (tensor for group in optimizer.param_groups for tensor in group["params"])


def _optimizers(value: Any, depth: int) -> Iterator[Optimizer]:
    """The optimizers that a part is, or holds: it gives their state."""
    if isinstance(value, Optimizer):
        yield value
    is_alone = isinstance(value, Optimizer) and type(value).state_dict is Optimizer.state_dict  # as SAM: no inner state
    if is_alone or depth > MAX_DEPTH:
        return
    inner = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list | tuple) else []
    for item in [*inner, *getattr(value, "__dict__", {}).values()]:
        if not isinstance(item, Tensor):
            yield from _optimizers(item, depth + 1)
