"""The state that a step was computed from, kept until the step is taken over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.training.exact.training_tensors import words_of


class StateBefore:
    """What a step was computed from, to see when it is taken over that nobody has changed it.

    Args:
        model, optimizer: those of the step.
        moment: all that a step depends on besides the numbers in tensors, as it is now.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, moment: Callable[[], object]) -> None:
        self._model, self._optimizer, self._moment = model, optimizer, moment
        self._copies: dict[str, Words] = {}
        self._kept: object = None
        self._versions: object = None

    def keep(self) -> None:
        """Copy the model's numbers: versions of tensors miss writes through `.data` and by batch normalization."""
        self._kept = self._moment()
        for name, words in self._words().items():
            own = self._copies.get(name)
            if own is None or own.shape != words.shape:
                self._copies[name] = words.copy()
            else:
                np.copyto(own, words)

    def keep_optimizer(self) -> None:
        """Note the versions of the optimizer's tensors, after a capture has put them back."""
        self._versions = self._versions_now()

    def require_same(self) -> None:
        """Check that all is as it was kept.

        Raises:
            ProtocolError: something has changed; it is named.
        """
        changed = [name for name, words in self._words().items() if not _are_equal(words, self._copies[name])]
        if self._versions_now() != self._versions:
            changed.append("the state of the optimizer")
        if self._moment() != self._kept:
            changed.append("an option of the optimizer, or an attribute of a module,")
        if changed:
            raise ProtocolError(
                f"{changed[0]} has changed between model(x) and optimizer.step(): change it before or after the two"
            )

    def _words(self) -> Mapping[str, Words]:
        named = (*self._model.named_parameters(), *self._model.named_buffers())
        return {name: words_of(name, tensor) for name, tensor in named}

    def _versions_now(self) -> list[tuple[int, int]]:
        items = [item for state in self._optimizer.state.values() for item in state.values()]
        return [(id(item), item._version) for item in items if isinstance(item, Tensor)]


def _are_equal(one: Words, other: Words) -> bool:
    """Whether all words are the same; two at a time where their number is even."""
    kind = np.uint32 if one.size % 2 else np.uint64
    return one.shape == other.shape and np.array_equal(one.reshape(-1).view(kind), other.reshape(-1).view(kind))
