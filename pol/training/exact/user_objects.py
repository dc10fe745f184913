"""Objects of the user that a program has read when it was made, and that no later step reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from pol.graph.capture.guards.reachable_objects import ABSENT, ReachableObjects, is_same
from pol.training.exact.present_setting import closed_over


class UserObjects:
    """Everything that model and loss reach besides the model's own tensors, as it is now."""

    def __init__(self, model: nn.Module, loss: object) -> None:
        found = ReachableObjects({"model": model, "loss": loss}, versions=True)
        own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self._objects = found.objects
        self._tensors = [kept for kept in found.tensors if id(kept.tensor) not in own]
        self._model, self._loss = model, loss
        self._of_loss = _versions(loss, model)

    def changed(self) -> Iterator[str]:
        """The names of those that are others now."""
        for record in self._objects:
            now = record.read()
            for name in dict.fromkeys([*record.parts, *now]):
                if not is_same(record.parts.get(name, ABSENT), now.get(name, ABSENT)):
                    yield name
        yield from (kept.name for kept in self._tensors if kept.is_changed)

    def changed_in_loss(self) -> Iterator[str]:
        """The names of tensors of the loss that are others now; at little cost."""
        now = _versions(self._loss, self._model)
        for name in dict.fromkeys([*self._of_loss, *now]):
            (one, *state), (two, *other) = self._of_loss.get(name, (None,)), now.get(name, (None,))
            if one is not two or state != other:
                yield name


def tensors_of_loss(loss: object, model: nn.Module) -> dict[str, Tensor]:
    """The tensors by name that a loss holds or closes over, itself or in modules, besides those of the model."""
    function = loss.func if isinstance(loss, partial) else loss
    held = {"loss": function, **closed_over(function), **(loss.keywords if isinstance(loss, partial) else {})}
    found = {name: item for name, item in held.items() if isinstance(item, Tensor)}
    for name, item in held.items():
        if isinstance(item, nn.Module) and item is not model:
            found.update(_tensors_of(name, item))
    owner = getattr(function, "__self__", None)  # whose buffers may be anything, such as metrics of a trainer
    if isinstance(owner, nn.Module):
        found.update((f"loss.{name}", parameter) for name, parameter in owner.named_parameters())
    own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())} if found else set()
    return {name: tensor for name, tensor in found.items() if id(tensor) not in own}


def trained_beside(model: nn.Module, loss: object) -> Iterator[str]:
    """The names of tensors in model and loss that require a gradient, and are no parameters of the model."""
    own = {id(parameter) for parameter in model.parameters()}
    for name, tensor in (*_tensors_of("model", model), *tensors_of_loss(loss, model).items()):
        if tensor.requires_grad and id(tensor) not in own:
            yield name


def _tensors_of(name: str, module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for path, part in module.named_modules(prefix=name):
        for space in (vars(part), part._parameters, part._buffers):
            yield from ((f"{path}.{key}", item) for key, item in space.items() if isinstance(item, Tensor))


def _versions(loss: object, model: nn.Module) -> dict[str, tuple[Any, ...]]:
    return {
        name: (tensor, None if tensor.is_inference() else tensor._version, tensor.requires_grad)
        for name, tensor in tensors_of_loss(loss, model).items()
    }
