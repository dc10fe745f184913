"""The state that a step is computed from, remembered until the step is taken over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.execution._kernels import checksums
from pol.training.exact.training_tensors import TensorWords


@dataclass(frozen=True)
class Moment:
    """All that a step depends on besides the numbers in tensors."""

    number: int
    setting: Any
    options: object


class StateBefore:
    """What a step is computed from, to see when it is taken over that nobody has changed it.

    Args:
        model, optimizer: those of the step.
        moment: the present one.
        threads: that read the model's numbers.
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, moment: Callable[[], Moment], threads: Callable[[], int]
    ) -> None:
        self._model, self._optimizer, self._moment, self._threads = model, optimizer, moment, threads
        self._tensors: list[tuple[str, Tensor, TensorWords]] = []
        self._places: list[Words | None] = []
        """The memory of tensors that hold words, which the step writes into."""
        self.parameters: dict[str, nn.Parameter] = {}
        """The model's parameters that were kept, by name."""
        self.updated: set[nn.Parameter] = set()
        """Those that the optimizer held."""
        self._sums: Sequence[int] = []
        self._kept: Moment | None = None
        self._versions: object = None

    @property
    def setting(self) -> Any:
        """The setting that was kept."""
        return None if self._kept is None else self._kept.setting

    def keep(self) -> None:
        """Note the model's numbers by their checksums: versions of tensors miss writes through `.data`."""
        moment = self._moment()
        if moment.setting != self.setting:  # else it has the same tensors
            self.parameters = dict(self._model.named_parameters())
            self.updated = {member for group in self._optimizer.param_groups for member in group["params"]}
            self._tensors = [(name, tensor, TensorWords()) for name, tensor in self._named_now()]
        self._kept = moment
        words = self._words_now()
        self._sums = checksums(words, self._threads())
        named_words = zip(self._tensors, words, strict=True)
        self._places = [own if view.is_of(own) else None for (_, _, view), own in named_words]

    def keep_optimizer(self) -> None:
        """Note the versions of the optimizer's tensors, after a capture has put them back."""
        self._versions = self._versions_now()

    def require_same(self) -> None:
        """Check that all is as it was kept. Raises ProtocolError: something has changed; it is named."""
        moment = self._moment()
        changed: list[str] = []
        if moment.setting != self.setting:
            kept = {name: tensor for name, tensor, _ in self._tensors}
            changed += [name for name, tensor in self._named_now() if kept.get(name) is not tensor]
        words = self._words_now()
        numbers = zip(self._tensors, self._sums, checksums(words, self._threads()), self._places, words, strict=True)
        for (name, _, _), before, now, place, own in numbers:
            if before != now or (place is not None and place is not own):
                changed.append(name)
        if self._versions_now() != self._versions:
            changed.append("the state of the optimizer")
        if moment != self._kept:
            changed.append("an option of the optimizer, or an attribute of a module,")
        if changed:
            raise ProtocolError(
                f"{changed[0]} has changed between model(x) and optimizer.step(): change it before or after the two"
            )

    def _named_now(self) -> list[tuple[str, Tensor]]:
        return [*self._model.named_parameters(), *self._model.named_buffers()]

    def _words_now(self) -> list[Words]:
        return [view.of(name, tensor) for name, tensor, view in self._tensors]

    def _versions_now(self) -> list[tuple[int, int, int]]:
        items = [item for state in self._optimizer.state.values() for item in state.values()]
        return [(id(item), item._version, item.data_ptr()) for item in items if isinstance(item, Tensor)]
