"""The state of a captured step as the user's own tensors: read before a step, written after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim import Optimizer

from pol.arithmetic.primitives import Words
from pol.graph.capture import to_words
from pol.graph.capture.optimizers import RULES
from pol.graph.capture.tracing.step_inputs import AVERAGE
from pol.graph.capture.training import Training
from pol.graph.captured_step import Capture
from pol.training.task.task_training import to_tensor

STEP = "step"
"""Key of an optimizer's state with the number of updates; a program has the numbers that follow from it instead."""


_NONE: Words = np.empty(0, np.uint32)
_EMPTY: Mapping[str, object] = {}


def words_of(what: str, tensor: Tensor) -> Words:
    """The words of a tensor; of contiguous float32 a view, without a copy.

    Raises:
        UnsupportedError: it holds an integer that doesn't fit in 32 bits.
    """
    plain = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    if _is_words(plain):
        found: Words = plain.numpy().view(np.uint32)
        return found
    return to_words(what, plain)


def copy_into(kept: Tensor | None, tensor: Tensor) -> Tensor:
    """As `copy_of`, in the memory of an earlier copy if that has the same form: new memory costs page faults."""
    if kept is None or kept.shape != tensor.shape or not _is_words(tensor) or not _is_words(kept):
        return copy_of(tensor)
    np.copyto(kept.numpy(), tensor.detach().numpy())
    return kept


class TensorWords:
    """The words of one tensor: a view is made once, and kept while the tensor stays in its place."""

    __slots__ = ("_place", "_tensor", "_words")

    def __init__(self) -> None:
        self._tensor: Tensor | None = None
        self._place: object = None
        self._words: Words = _NONE

    def of(self, what: str, tensor: Tensor) -> Words:
        """As `words_of`; the same object while it is a view of the same memory."""
        place = (tensor.data_ptr(), tensor.shape) if _is_words(tensor) else None
        if place is None or tensor is not self._tensor or place != self._place:
            self._words = words_of(what, tensor)
            self._tensor, self._place = tensor, place
        return self._words

    def is_of(self, words: Words) -> bool:
        """Whether this is the view, and no copy."""
        return self._place is not None and words is self._words


def copy_of(tensor: Tensor) -> Tensor:
    """A copy, made by this thread alone: threads of torch that wait for more work keep the kernels' from a core."""
    if not _is_words(tensor):
        return tensor.clone()
    return torch.from_numpy(tensor.detach().numpy().copy())


def _is_words(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg()


class TrainingTensors:
    """Parameters, buffers, averages of the weights and state of the optimizer, in the order of a program's slots.

    Args:
        captured: the step; its state stands in for tensors that the optimizer makes in its first step.
        training: the step's parts, of which several optimizers name their slots `parameter:place.key`.
        averages: moving averages of the weights, by parameter.
    """

    def __init__(self, captured: Capture, training: Training, averages: Mapping[str, Tensor]) -> None:
        self._initial, self._optimizers, self._averages = captured.state, training.optimizers, averages
        model = training.model
        self._slots = captured.aten.slots
        self._parameters = dict(model.named_parameters())
        own: dict[str, Tensor] = {**self._parameters, **dict(model.named_buffers())}
        self._own = [own.get(slot.name) for slot in self._slots]
        self._keys = [_place_of(slot.name, len(self._optimizers)) for slot in self._slots]
        self._views = [TensorWords() for _ in self._slots]
        self._present: list[Tensor | None] = []
        """The tensors that were read last."""
        self.changing = [place for place, ref in enumerate(captured.aten.next_state) if ref.value != place]
        """Slots that a step changes."""
        moved = {self._slots[place].name for place in self.changing}
        self._counted = [
            (own, self._parameters[name], first)
            for own in self._optimizers
            for name, first in _first_counts(own, self._parameters).items()
            if name in moved and first is not None
        ]
        turns = {id(own): len(training.turns(place)) for place, own in enumerate(self._optimizers)}
        self._turns = [turns[id(own)] for own, _, _ in self._counted]
        self._steps: list[object] = []
        self._versions: list[int] = []
        self._counts = np.empty(0, np.int64)
        """What the tensors `_steps` hold in these versions."""

    def words(self) -> list[Words]:
        """The present state: where a tensor holds words, its own memory.

        Raises:
            UnsupportedError: an integer doesn't fit in 32 bits.
        """
        self._present = [self._tensor(number) for number in range(len(self._slots))]
        found = []
        for slot, initial, view, tensor in zip(self._slots, self._initial, self._views, self._present, strict=True):
            words = initial if tensor is None else view.of(slot.name, tensor)
            found.append(words.copy() if tensor is None or tensor.is_inference() else words)
        return found

    def write(self, words: Sequence[Words]) -> None:
        """Take over what a step has changed in tensors that have stayed in their places since `words`.

        Some of it was written into the arrays of `words`.
        """
        written = []
        with torch.no_grad():
            for number, new in zip(self.changing, words, strict=True):
                tensor = self._present[number]
                if tensor is None:
                    name, place, key = self._keys[number]
                    state = self._optimizers[place].state[self._parameters[name]]
                    state[key] = to_tensor(self._slots[number].type, new)
                elif self._views[number].is_of(new):
                    written.append(tensor)
                elif _is_words(tensor) and not tensor.is_inference():
                    np.copyto(words_of("", tensor), new)  # as in `copy_of`
                    written.append(tensor)
                else:
                    tensor.copy_(torch.from_numpy(new.view(np.float32 if tensor.is_floating_point() else np.int32)))
            increment_version(written)
            self._count()

    def uncounted(self, number: int) -> NDArray[np.int64]:
        """By how many updates each count of an optimizer differs from those of so many steps."""
        return self._counts_now() - np.array(self._turns, np.int64) * number

    def _counts_now(self) -> NDArray[np.int64]:
        """The number of updates of every parameter for which an optimizer counts them."""
        steps = [own.state.get(parameter, _EMPTY).get(STEP, 0) for own, parameter, _ in self._counted]
        if not self._are_known(steps):
            counts = [step.item() if isinstance(step, Tensor) else step for step in steps]
            self._know(steps, np.array(counts, np.int64))
        return self._counts

    def _tensor(self, number: int) -> Tensor | None:
        """The user's tensor of a slot; None if the optimizer hasn't made it."""
        if (own := self._own[number]) is not None:
            return own
        name, place, key = self._keys[number]
        if (slot := self._slots[number].name).startswith(AVERAGE):
            return self._averages[slot.removeprefix(AVERAGE)]
        found = self._optimizers[place].state.get(self._parameters[name], _EMPTY).get(key)
        return found if isinstance(found, Tensor) else None

    def _count(self) -> None:
        """The updates of a step, of every updated parameter, where an optimizer counts them."""
        counts, steps, tensors, added = self._counts_now() + np.array(self._turns, np.int64), [], [], []
        for (own, parameter, first), turns in zip(self._counted, self._turns, strict=True):
            state = own.state[parameter]
            before = state.get(STEP)
            if isinstance(before, Tensor) and not before.is_inference():
                tensors.append(before)
                added.append(turns)
            else:
                state[STEP] = first + (turns - 1) if before is None else before + turns
            steps.append(state[STEP])
        if tensors:
            torch._foreach_add_(tensors, added)
        self._know(steps, counts)

    def _are_known(self, steps: Sequence[object]) -> bool:
        same = len(steps) == len(self._steps) and all(map(is_, steps, self._steps))
        return same and _versions(steps) == self._versions

    def _know(self, steps: list[object], counts: NDArray[np.int64]) -> None:
        self._steps, self._versions, self._counts = steps, _versions(steps), counts


def _versions(steps: Sequence[object]) -> list[int]:
    return [step._version for step in steps if isinstance(step, Tensor) and not step.is_inference()]


def _place_of(slot: str, optimizers: int) -> tuple[str, int, str]:
    """Parameter, optimizer and key of a slot of optimizer state; of another slot nothing."""
    name, _, key = slot.rpartition(":")
    if optimizers == 1 or not name:
        return name, 0, key
    place, _, key = key.partition(".")
    return name, int(place), key


def _first_counts(optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """By parameter: the state ``step`` after the first update by an optimizer of this kind, None if it has none."""
    if type(optimizer) not in RULES:
        return {}  # it counts in tensors, which are slots
    names = {id(parameter): name for name, parameter in parameters.items()}
    found = {}
    for group in optimizer.param_groups:
        probe = nn.Parameter(torch.zeros(1, 1))  # some optimizers take matrices alone
        probe.grad = torch.zeros(1, 1)
        own = type(optimizer)([{**group, "params": [probe]}])  # type: ignore[call-arg]  # a rule's optimizer has defaults
        own.step()
        first = own.state[probe].get(STEP)
        found.update({names[id(member)]: first for member in group["params"] if id(member) in names})
    return found
