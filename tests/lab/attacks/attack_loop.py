"""A training loop in ordinary PyTorch over a task's states: other kernels and precisions than a canonical run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from lab.attacks.attack_target import State, Target
from pol.arithmetic.primitives import Words
from pol.graph.step_program import Component

Around = Callable[[], AbstractContextManager[object]]
_PRODUCTS = ("mm.default", "addmm.default", "bmm.default", "convolution.default", "convolution_backward.default")


class AttackLoop:
    """The user's own loop: module, autograd and torch's optimizer; reads and writes states of the task.

    ``around`` is entered for forward and backward pass, ``behind`` for the backward pass alone, ``compiled`` compiles
    the model.
    """

    def __init__(
        self, target: Target, around: Around = nullcontext, compiled: bool = False, behind: Around = nullcontext
    ) -> None:
        self._target = target
        self._around = around
        self._behind = behind
        self.model = target.build()
        self._optimizer = target.optimize(self.model)
        # Compiled together with its loss, as users do.
        self._loss = torch.compile(self._forward) if compiled else self._forward
        self._inputs, self._labels = target.data()
        self._order = torch.from_numpy(target.order())
        self._parameters = dict(self.model.named_parameters())
        self._buffers = dict(self.model.named_buffers())

    def train(self, state: Sequence[Words], first: int, count: int) -> State:
        """The state after ``count`` steps from step ``first``."""
        self.load(state, first)
        for step in range(first, first + count):
            rows = self._order[step]
            self._optimizer.zero_grad()
            with self._around():
                loss = self._loss(self._inputs[rows], self._labels[rows])
                with self._behind():
                    loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
            self._optimizer.step()
        return self.state()

    def load(self, state: Sequence[Words], step: int) -> None:
        """Put a state into model and optimizer, before step ``step``."""
        moments: dict[str, dict[str, Tensor]] = {name: {} for name in self._parameters}
        with torch.no_grad():
            for place, (name, component) in enumerate(self._slots()):
                tensor = self._target.tensor(place, state[place])
                if component is Component.OPTIMIZER:
                    owner, _, key = name.rpartition(":")
                    moments[owner][key] = tensor
                else:
                    self._place(name).copy_(tensor)
        for name, parameter in self._parameters.items():
            adams = {"step": torch.tensor(float(step))} if "exp_avg" in moments[name] else {}
            self._optimizer.state[parameter] = {**moments[name], **adams}

    def state(self) -> State:
        """The state in model and optimizer."""
        result = []
        for place, (name, component) in enumerate(self._slots()):
            if component is Component.OPTIMIZER:
                owner, _, key = name.rpartition(":")
                tensor: Tensor = self._optimizer.state[self._parameters[owner]][key]
            else:
                tensor = self._place(name)
            result.append(self._target.words(place, tensor.detach()))
        return result

    def _forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        return self._target.loss(self.model(inputs), labels)

    def _place(self, name: str) -> Tensor:
        return self._parameters[name] if name in self._parameters else self._buffers[name]

    def _slots(self) -> list[tuple[str, Component]]:
        slots = self._target.task.program.slots
        return [(name, slot.component) for name, slot in zip(self._target.task.names.slots, slots, strict=True)]


class RoundedProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types
    """Products and convolutions read their operands with fewer bits of significand, as tensor cores do.

    Sums stay float32. 11 bits are those of TF32 and float16, 8 those of bfloat16, 24 all of them.
    """

    def __init__(self, bits: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self._bits = bits

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation, on rounded operands if it is a product."""
        if str(func).removeprefix("aten.") in _PRODUCTS:
            args = [self._rounded(item) if isinstance(item, Tensor) and item.dim() > 1 else item for item in args]
        return func(*args, **(kwargs or {}))

    def _rounded(self, tensor: Tensor) -> Tensor:
        dropped = 24 - self._bits
        if dropped == 0:
            return tensor
        # To nearest, ties away from zero: half of the last kept place is added, what is below it is cut.
        bits = tensor.contiguous().view(torch.int32) + (1 << (dropped - 1))
        return (bits >> dropped << dropped).view(torch.float32)


def forward_loss(target: Target, state: Sequence[Words], step: int) -> float:
    """The loss of a step's batch in a state, by a forward pass; the state isn't changed."""
    tensors = {
        name: target.tensor(place, state[place])
        for place, name in enumerate(target.task.names.slots)
        if target.task.program.slots[place].component is not Component.OPTIMIZER
    }
    inputs, labels = target.batch(step)
    with torch.no_grad():
        return float(target.loss(torch.func.functional_call(target.model, tensors, (inputs,)), labels))


def with_weights(target: Target, state: Sequence[Words]) -> nn.Module:
    """The model with the parameters and buffers of a state."""
    loop = AttackLoop(target)
    loop.load(state, 0)
    return loop.model
