"""The parts of a training step as the user gives them: model, phases (a loss, its optimizers) and the loop around."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.graph.capture.loop import Loop

Loss: TypeAlias = Callable[..., Any] | None
Losses: TypeAlias = "Loss | Sequence[Loss]"
Optimizers: TypeAlias = "Optimizer | Sequence[Optimizer | Sequence[Optimizer]]"
Dataset: TypeAlias = "Sequence[Tensor] | Mapping[str, Tensor]"

_WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module"}
"""By class of torch: where it keeps the module that it wraps."""


@dataclass(frozen=True)
class Objective:
    """The loss of a batch.

    `loss` is None for a model that gives its loss. `keys` are the names of the tensors, or None where they have places.
    `takes_model` says that the loss calls the model itself.
    """

    loss: Loss
    keys: tuple[str, ...] | None
    takes_model: bool = False

    def parts(self, loop: Loop, batches: Sequence[Sequence[Tensor]]) -> int | Tensor:
        """The number by which the loss of each micro-batch is divided."""
        if loop.items is None:
            return len(batches)
        counts = [self._called(loop.items, batch) for batch in batches]
        if not all(isinstance(count, Tensor) and count.numel() == 1 for count in counts):
            raise UnsupportedError("items must return one number as a tensor: (labels != -100).sum()")
        return torch.stack([count.reshape(()) for count in counts]).sum()

    def share(self, value: Any, parts: int | Tensor) -> Any:
        """The part that the loss of a micro-batch has in that of its step."""
        is_done = self.loss is None if isinstance(parts, Tensor) else parts == 1
        return value if is_done else value / parts

    def __call__(self, model: nn.Module, batch: Sequence[Tensor], parts: int | Tensor = 1) -> Any:
        """The value for a batch; a model that gives its own loss counts the items of a step."""
        loss = self.loss
        if loss is None and isinstance(parts, Tensor):
            return _own_loss(self._called(partial(model, num_items_in_batch=parts), batch))
        if self.takes_model and loss is not None:
            return self._called(loss, batch, model)
        if loss is None:
            return _own_loss(self._called(model, batch))
        if _takes_output_alone(loss):
            return loss(self._called(model, batch))
        *inputs, target = batch
        return loss(self._called(model, inputs or batch), target)

    def _called(self, function: Callable[..., Any], tensors: Sequence[Tensor], *first: Any) -> Any:
        if self.keys is None:
            return function(*first, *tensors)
        return function(*first, **dict(zip(self.keys, tensors, strict=False)))


@dataclass(frozen=True)
class Phase:
    """A forward and backward pass, and the update of the parameters that `optimizers` (places in Training) hold."""

    objective: Objective
    optimizers: tuple[int, ...]


@dataclass(frozen=True)
class Training:
    """A step: its phases, one after another on the same batch."""

    model: nn.Module
    phases: tuple[Phase, ...]
    optimizers: tuple[Optimizer, ...]
    loop: Loop

    @classmethod
    def of(cls, model: nn.Module, loss: Losses, optimizer: Optimizers, dataset: Dataset, loop: Loop) -> Training:
        """From the arguments of a capture.

        Raises:
            UnsupportedError: losses and optimizers that don't belong together.
        """
        keys = tuple(dataset) if isinstance(dataset, Mapping) else None
        losses: list[Any]
        members: list[Any]
        if not isinstance(loss, list | tuple):
            losses, members = [loss], [optimizer]
        elif isinstance(optimizer, list | tuple) and len(optimizer) == len(loss) > 0:
            losses, members = list(loss), list(optimizer)
        else:
            raise UnsupportedError(
                f"{len(loss)} losses need as many optimizers, one or a list for each: "
                "capture(model, (loss_a, loss_b), (optimizer_a, optimizer_b), ...)"
            )
        if isinstance(loss, list | tuple) and any(item is None for item in losses):
            raise UnsupportedError("of several losses none may be None: each is a function of the model and the batch")
        found: list[Optimizer] = []
        phases = []
        for one, group in zip(losses, members, strict=True):
            own = list(group) if isinstance(group, list | tuple) else [group]
            found += [item for item in own if not any(item is known for known in found)]
            places = tuple(next(place for place, known in enumerate(found) if known is item) for item in own)
            phases.append(Phase(Objective(one, keys, isinstance(loss, list | tuple)), places))
        return cls(plain(model), tuple(phases), tuple(found), loop)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The loss of each phase."""
        return tuple(phase.objective.loss for phase in self.phases)

    def roots(self) -> dict[str, object]:
        """The user's objects by the names that messages use."""
        losses, optimizers = self.losses, self.optimizers
        return {
            "model": self.model,
            "loss": losses[0] if len(losses) == 1 else losses,
            "optimizer": optimizers[0] if len(optimizers) == 1 else optimizers,
        }

    def turns(self, place: int) -> list[int]:
        """The phases in which an optimizer steps."""
        return [number for number, phase in enumerate(self.phases) if place in phase.optimizers]


def named_tensors(dataset: Dataset) -> dict[str, Tensor]:
    """The tensors of a data set or a batch by name, or by place."""
    return dict(dataset.items() if isinstance(dataset, Mapping) else ((str(i), t) for i, t in enumerate(dataset)))


def plain(model: Any) -> Any:
    """The module that torch.compile or DataParallel wraps."""
    while type(model).__module__.startswith("torch.") and type(model).__name__ in _WRAPPERS:
        model = getattr(model, _WRAPPERS[type(model).__name__])
    return model


def _own_loss(output: Any) -> Any:
    """The loss among what a model gives: the output itself, its entry `loss`, or the first of a tuple."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        return output.get("loss")
    if hasattr(output, "loss"):
        return output.loss
    return output[0] if isinstance(output, tuple | list) and output else output


def _takes_output_alone(loss: Callable[..., Any]) -> bool:
    """Whether a loss has one argument: it compares with no target."""
    try:
        parameters = inspect.signature(loss.forward if isinstance(loss, nn.Module) else loss).parameters.values()
    except (TypeError, ValueError):  # a function of C
        return False
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return False
    places = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return sum(parameter.kind in places for parameter in parameters) == 1


@contextmanager
def uncompiled() -> Iterator[None]:
    """While active, what torch.compile has wrapped runs as it was written."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and loading it takes seconds
        yield
        return
    with torch.compiler.set_stance("force_eager"), torch._dynamo.config.patch(error_on_nested_fx_trace=False):
        yield
