"""The state of a trainer made of ordinary torch objects: gathered from them, and put back into them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.errors import ProtocolError, UnsupportedError
from pol.training.state import tensors, values
from pol.training.state.data_cursor import DataCursor
from pol.training.state.draws import Draws
from pol.training.state.environment import Environment
from pol.training.state.gradients import Gradients
from pol.training.state.random_state import RandomSources

Batch = TypeVar("Batch")


class DataCursors(Draws):
    """The places in all loaders of a training, by their names.

    A resumed loop enters its epoch where it draws a batch, so a state is taken and restored there.
    """

    def __init__(self, random: RandomSources) -> None:
        super().__init__(random)
        self.loaders: dict[str, DataCursor] = {}
        self.stepped = ""

    @property
    def epoch(self) -> int:
        """The epoch of the loader that the loop goes on with, or that the steps are taken with."""
        cursor = self.loaders.get(self.awaited or self.stepped or next(iter(self.loaders), ""))
        return 0 if cursor is None else cursor.present[0]

    @property
    def has_drawn(self) -> bool:
        """Whether the loop holds a batch with which no step was taken."""
        return any(self.loaders[name].drawn for name in self.open)

    def is_ending(self, name: str) -> bool:
        """Whether loaders that steps were taken with beside this one have no more batches, as in `zip`."""
        return any(self.loaders[other].present[1] == 0 for other in self.loaders[name].beside)

    def state(self) -> dict[str, Any]:
        """The places in a checkpoint. ``at`` is the loader that the loop goes on with, if it is inside of its epoch."""
        halfway = self.stepped if self.stepped and self.loaders[self.stepped].present[1] else ""
        states = {name: cursor.state() for name, cursor in self.loaders.items()}
        return {"at": self.drawing or self.awaited or halfway, "stepped": self.stepped, "loaders": states}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from the places in a checkpoint."""
        self.awaited, self.stepped = state["at"], state["stepped"]
        for name, found in state["loaders"].items():
            self.loaders.setdefault(name, DataCursor(self, name)).load(found)
        self.resumed = self.epoch

    def note_step(self) -> None:
        """A step is over: it was taken with the loader that was begun first of those that aren't over."""
        if self.open:
            self.stepped = self.open[0]
        for name in self.open:
            self.loaders[name].note_step(set(self.open))
        self.awaited, self.resumed = "", None

    def batches(self, loader: Iterable[Batch], name: str = "data", **how: Any) -> Iterator[Batch]:
        """One epoch of a loader, or the rest of the one that a checkpoint left; ``how`` as in `DataCursor.batches`."""
        cursor = self.loaders.setdefault(name, DataCursor(self, name))
        cursor.take(loader)
        made = cursor.batches(loader, **how)
        cursor.given = weakref.ref(made)
        return made


RESERVED = frozenset({"parameters", "buffers", "gradients", "model", "random", "cursor", "environment"})

OWN = "own"
"""What an optimizer updates and nothing else of the state holds."""

ORDERS = "orders"
"""How an optimizer's tensors lie in memory, where that isn't row by row: a sum over one depends on it."""


@runtime_checkable
class Stateful(Protocol):
    """An optimizer, a scheduler, a gradient scaler, a stateful loader: anything that gives and takes its state."""

    def state_dict(self) -> Any:
        """The state, as nested Python values and tensors."""
        ...

    def load_state_dict(self, state: Any, /) -> Any:
        """Take a state from `state_dict`."""
        ...


class TrainerState:
    """The model and all other state of a trainer, by component.

    ``parts`` are stateful objects by name: optimizer, scheduler, scaler and further state of the next step.
    ``gradients``: gradients are part of the state, as a checkpoint may fall between backward passes that add up.

    Raises:
        UnsupportedError: a part without state_dict and load_state_dict, or with a reserved name.
    """

    def __init__(
        self, model: nn.Module, parts: Mapping[str, Stateful], random: RandomSources, *, gradients: bool = False
    ):
        for name, part in parts.items():
            if name in RESERVED or not name.isidentifier():
                raise UnsupportedError(f"{name!r} can't be the name of a part: choose another identifier")
            if not isinstance(part, Stateful):
                raise UnsupportedError(
                    f"{name} is a {type(part).__name__} without state_dict and load_state_dict: add the two methods, "
                    "or leave it out if the next step doesn't depend on it"
                )
        self.model = model
        self.parts = dict(parts)
        self.random = random
        self.data = DataCursors(random)
        self.gradients = gradients
        self.cleared = Gradients(self.trainable, self._updated, lambda: bool(self.data.stepped), gradients)
        self._environment = Environment([model, *parts.values()])

    def components(self) -> dict[str, object]:
        """The present state. Its tensors are live: copy them to keep them."""
        random = self.random.state()
        parameters, aliases = _unique(self.model.named_parameters(remove_duplicate=False))
        buffers, buffer_aliases = _unique(self.model.named_buffers(remove_duplicate=False))
        components: dict[str, Any] = {
            "parameters": parameters,
            "buffers": buffers,
            "model": {
                "aliases": aliases | buffer_aliases,
                "training": {name: module.training for name, module in self.model.named_modules()},
                "trained": {name: p.requires_grad for name, p in parameters.items()},
                "extra": {name: module.get_extra_state() for name, module in _with_extra(self.model)},
            },
            "random": random,
            "cursor": {**self.data.state(), "gradients": self.cleared.state()},
            "environment": self._environment.state(),
        }
        if (kept := self.cleared.kept()) or self.gradients:
            components["gradients"] = kept
        beside = values.beside(self.parts, [*parameters.values(), *buffers.values()])
        for name, part in self.parts.items():
            state = part.state_dict()
            more = {OWN: self.own(part), ORDERS: _orders(part, state), **beside.get(name, {})}
            components[name] = {"state": state, "names": _names(part, parameters)}
            components[name] |= {key: value for key, value in more.items() if value}
        if any(not isinstance(part, Optimizer) for part in self.parts.values()):
            self.random.load(random)  # some loaders draw when they are first asked for their state
        return components

    def trainable(self) -> dict[str, Tensor]:
        """All tensors that may have gradients which an optimizer uses, by name."""
        found: dict[str, Tensor] = dict(self.model.named_parameters())
        for name, part in self.parts.items():
            more = part.named_parameters() if isinstance(part, nn.Module) else self.own(part).items()
            found |= {f"{name}/{own}": tensor for own, tensor in more}
        return found

    def _updated(self) -> dict[int, str]:
        """The names of optimizers by the tensors that they update."""
        optimizers = [(name, part) for name, part in self.parts.items() if isinstance(part, Optimizer)]
        return {id(p): name for name, part in optimizers for group in part.param_groups for p in group["params"]}

    def own(self, part: Stateful) -> dict[str, Tensor]:
        """Tensors that an optimizer updates, by number, and that neither the model nor a module among the parts holds:
        the weights at the beginning of a round, or copies in another precision.
        """
        if not isinstance(part, Optimizer):
            return {}
        modules = [self.model, *(other for other in self.parts.values() if isinstance(other, nn.Module))]
        held = {id(tensor) for module in modules for tensor in module.parameters()}
        updated = [tensor for group in part.param_groups for tensor in group["params"]]
        return {str(number): tensor for number, tensor in enumerate(updated) if id(tensor) not in held}

    def updated(self, name: str) -> list[str]:
        """Names of the parameters that an optimizer updates, in its order."""
        parameters, _ = _unique(self.model.named_parameters(remove_duplicate=False))
        groups = _names(self.parts[name], parameters) if name in self.parts else []
        return [parameter for group in groups for parameter in group]

    def load(self, components: Mapping[str, Any]) -> None:
        """Put a state into the objects; random generators last."""
        expected = (RESERVED - {"gradients"}) | self.parts.keys() | ({"gradients"} if self.gradients else set())
        if not expected <= components.keys() <= expected | {"gradients"}:
            raise ProtocolError(
                f"the checkpoint holds {sorted(components)}, this trainer has {sorted(expected)}: give the recorder "
                "the same objects as in the run that is resumed"
            )
        parameters, _ = _unique(self.model.named_parameters(remove_duplicate=False))
        buffers, _ = _unique(self.model.named_buffers(remove_duplicate=False))
        for name, part in self.parts.items():
            if components[name]["names"] != _names(part, parameters):
                raise ProtocolError(
                    f"{name} updates other parameters, or in another order, than the one recorded: give it all its "
                    "groups before resume(), also those that it trains later, and let requires_grad say when"
                )
        _fill("parameter", parameters, components["parameters"])
        _fill("buffer", buffers, components["buffers"])
        for name, module in self.model.named_modules():
            module.training = bool(components["model"]["training"].get(name, module.training))
        for name, parameter in parameters.items():
            parameter.requires_grad_(bool(components["model"]["trained"].get(name, parameter.requires_grad)))
        for name, module in _with_extra(self.model):
            module.set_extra_state(components["model"]["extra"][name])
        options: list[tuple[dict[str, Any], dict[str, Any]]] = []
        optimizers = [(name, part) for name, part in self.parts.items() if isinstance(part, Optimizer)]
        held = {name: (part.state, [*part.param_groups]) for name, part in optimizers}
        for name, part in self.parts.items():
            state = components[name]["state"]
            part.load_state_dict(values.as_they_were(state, components[name]))
            if isinstance(part, Optimizer):
                # Others may hold state and groups, as the optimizer in SAM, or the loop: torch makes new ones.
                part.state = _refilled(held[name][0], part.state)
                part.param_groups[:] = [_refilled(*pair) for pair in zip(held[name][1], part.param_groups, strict=True)]
                _fill(f"tensor of {name}", self.own(part), components[name].get(OWN, {}))
                updated = [tensor for group in part.param_groups for tensor in group["params"]]
                for number, recorded in state["state"].items():
                    part.state[updated[number]] = _uncast(part.state[updated[number]], recorded)
                for number, orders in components[name].get(ORDERS, {}).items():
                    held = part.state[updated[number]]
                    held.update({key: tensors.in_order(held[key], order) for key, order in orders.items()})
                options += [(group, {k: v for k, v in group.items() if k != "params"}) for group in part.param_groups]
        values.join(self.parts, components)
        for group, restored in options:
            group.update(restored)  # a scheduler may have set rates when it took its state
        self.cleared.load(components["cursor"]["gradients"], components.get("gradients", {}))
        self.random.load(components["random"])
        self.data.load(components["cursor"])


def module_state(components: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The recorded tensors among ``names``, which torch saves, in the form of `Module.load_state_dict`.

    Tensors that shared memory get a copy each.
    """
    state: dict[str, Any] = {**components["parameters"], **components["buffers"]}
    state |= {name: state[first].clone() for name, first in components["model"]["aliases"].items()}
    state |= {f"{name}._extra_state".lstrip("."): extra for name, extra in components["model"]["extra"].items()}
    return {name: state[name] for name in names if name in state}


def _unique(named: Iterable[tuple[str, Tensor]]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Each tensor once, under its first name; the other names point to it."""
    first: dict[int, str] = {}
    tensors, aliases = {}, {}
    for name, tensor in named:
        known = first.setdefault(id(tensor), name)
        if known == name:
            tensors[name] = tensor
        else:
            aliases[name] = known
    return tensors, aliases


def _with_extra(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Modules with state other than tensors."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if type(module).get_extra_state is not nn.Module.get_extra_state
    ]


def _refilled(held: Any, loaded: Mapping[Any, Any]) -> Any:
    """The dictionary that others hold, with what was loaded."""
    found = dict(loaded)
    held.clear()
    held.update(found)
    return held


def _names(part: Stateful, parameters: Mapping[str, Tensor]) -> list[list[str]]:
    """Names of the parameters in each group of an optimizer, whose own state only numbers them."""
    if not isinstance(part, Optimizer):
        return []
    names = {id(tensor): name for name, tensor in parameters.items()}
    return [[names.get(id(p), "") for p in group["params"]] for group in part.param_groups]


def _orders(part: Stateful, state: Mapping[str, Any]) -> dict[int, dict[str, list[int]]]:
    """The order of each tensor of an optimizer's state that doesn't lie row by row, by parameter and name."""
    if not isinstance(part, Optimizer):
        return {}
    found = {
        number: {key: order for key, value in values.items() if (order := tensors.order_of(value))}
        for number, values in state["state"].items()
        if isinstance(values, Mapping)
    }
    return {number: orders for number, orders in found.items() if orders}


def _fill(kind: str, targets: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    if targets.keys() != values.keys():
        odd = sorted(targets.keys() ^ values.keys())[0]
        where = "the model lacks" if odd in values else "the checkpoint lacks"
        raise ProtocolError(f"{where} the {kind} {odd}: resume with the model that was recorded")
    for name, target in targets.items():
        value = values[name]
        if value.dtype != target.dtype or value.shape != target.shape:
            raise ProtocolError(
                f"{kind} {name} is {target.dtype} of shape {tuple(target.shape)}, the checkpoint holds {value.dtype} "
                f"of shape {tuple(value.shape)}"
            )
    with torch.no_grad():
        for name, target in targets.items():
            target.copy_(values[name])


def _uncast(value: Any, recorded: Any) -> Any:
    """The restored state of a parameter in the recorded types: torch casts it to that of the parameter."""
    if isinstance(value, Tensor) and isinstance(recorded, Tensor):
        return value if value.dtype == recorded.dtype else recorded.to(value.device)
    if isinstance(value, dict) and isinstance(recorded, Mapping):
        return {key: _uncast(item, recorded.get(key)) for key, item in value.items()}
    if type(value) in (list, tuple) and isinstance(recorded, list | tuple) and len(value) == len(recorded):
        return type(value)(_uncast(item, other) for item, other in zip(value, recorded, strict=True))
    return value
