"""The state of a captured step as the user's own tensors: read before a step, written after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.training.task.task_training import to_tensor

STEP = "step"
"""Key of an optimizer's state with the number of updates; a program has the numbers that follow from it instead."""


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
        averages: moving averages of the weights, by parameter.
    """

    def __init__(
        self, captured: Capture, model: nn.Module, optimizer: Optimizer, averages: Mapping[str, Tensor]
    ) -> None:
        self._captured, self._optimizer = captured, optimizer
        self._parameters = dict(model.named_parameters())
        self._own = {**self._parameters, **dict(model.named_buffers())}
        self._averages = averages
        graph = captured.aten
        self._changes = [ref.value != place for place, ref in enumerate(graph.next_state)]
        moved = {slot.name for slot, changes in zip(graph.slots, self._changes, strict=True) if changes}
        self._counted = {
            name: first
            for name, first in _first_counts(optimizer, self._parameters).items()
            if name in moved and first is not None
        }

    def words(self) -> list[Words]:
        """The present state.

        Raises:
            UnsupportedError: an integer doesn't fit in 32 bits.
        """
        found = []
        for slot, initial in zip(self._captured.aten.slots, self._captured.state, strict=True):
            tensor = self._tensor(slot.name)
            found.append(initial if tensor is None else words_of(slot.name, tensor))
        return found

    def write(self, words: Sequence[Words]) -> None:
        """Take over the state after a step."""
        slots = self._captured.aten.slots
        copied = []
        with torch.no_grad():
            for slot, changes, new in zip(slots, self._changes, words, strict=True):
                if not changes:
                    continue
                tensor = self._tensor(slot.name)
                if tensor is None:
                    name, _, key = slot.name.rpartition(":")
                    self._optimizer.state[self._parameters[name]][key] = to_tensor(slot.type, new)
                    continue
                now = torch.from_numpy(new.view(np.float32 if tensor.is_floating_point() else np.int32))
                if slot.component is Component.OPTIMIZER and tensor.dtype == now.dtype and tensor.is_contiguous():
                    tensor.data = now  # nobody else has a view of it; parameters may have others
                elif _is_words(tensor) and not tensor.is_inference():
                    np.copyto(words_of(slot.name, tensor), new)  # as in `copy_of`
                    copied.append(tensor)
                else:
                    tensor.copy_(now)
            increment_version(copied)
            self._count()

    def counts(self) -> NDArray[np.int64]:
        """The number of updates of every parameter for which the optimizer counts them."""
        states = (self._optimizer.state.get(self._parameters[name], {}) for name in self._counted)
        return np.array([int(state.get(STEP, 0)) for state in states], np.int64)

    def _tensor(self, slot: str) -> Tensor | None:
        """The user's tensor of a slot; None if the optimizer hasn't made it."""
        if slot in self._own:
            return self._own[slot]
        if slot.startswith(AVERAGE):
            return self._averages[slot.removeprefix(AVERAGE)]
        name, _, key = slot.rpartition(":")
        found = self._optimizer.state.get(self._parameters[name], {}).get(key)
        return found if isinstance(found, Tensor) else None

    def _count(self) -> None:
        """One more update of every updated parameter, where the optimizer counts them."""
        for name, first in self._counted.items():
            before = self._optimizer.state.get(self._parameters[name], {}).get(STEP)
            self._optimizer.state[self._parameters[name]][STEP] = first.clone() if before is None else before + 1


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
