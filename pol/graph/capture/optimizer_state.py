"""The complete state of a torch optimizer, with the tensors that it would only make on its first step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from pol.errors import UnsupportedError

State = dict[str, Tensor]


def initial_state(optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> dict[str, State]:
    """Copies of the optimizer's state of every parameter that it updates, in the order of `parameters`.

    What the optimizer has not made yet is made here so that its first step gives the same numbers.
    Raises UnsupportedError for an optimizer or an option without such a rule.
    """
    rule = _RULES.get(type(optimizer))
    if rule is None:
        raise UnsupportedError(
            f"the optimizer {type(optimizer).__name__} has no definition yet: use torch.optim.SGD itself; momentum, "
            "nesterov, weight_decay and maximize are defined"
        )
    names = {id(parameter): name for name, parameter in parameters.items()}
    found: dict[str, State] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise UnsupportedError(
                    "the optimizer updates a tensor that is not a parameter of the model: give it model.parameters() "
                    "of the model that is captured"
                )
            if parameter.requires_grad:
                name = names[id(parameter)]
                present = {key: value for key, value in optimizer.state.get(parameter, {}).items() if value is not None}
                found[name] = rule(name, group, parameter, present)
    return {name: found[name] for name in parameters if name in found}


def traced_step(
    optimizer: Optimizer,
    parameters: Mapping[int, Tensor],
    gradients: Mapping[int, Tensor],
    state: Mapping[int, State],
) -> Mapping[int, State]:
    """Run the optimizer's own `step` on other tensors, keyed by the identity of the parameter that they stand for.

    Parameters change in place; the new optimizer state comes back. The user's optimizer is not touched.
    """
    shadow = object.__new__(type(optimizer))
    shadow.__dict__.update(optimizer.__dict__)
    shadow.param_groups = [
        {**_plain(group), "params": [parameters[id(p)] for p in group["params"]]} for group in optimizer.param_groups
    ]
    shadow.state = defaultdict(dict)
    for key, gradient in gradients.items():
        parameters[key].grad = gradient
        shadow.state[parameters[key]].update(state[key])
    shadow.step()
    return {key: dict(shadow.state[parameters[key]]) for key in gradients}


def _plain(group: Mapping[str, Any]) -> dict[str, Any]:
    """Options as numbers, and the plain implementation among those that compute the same."""
    options = {
        key: value.item() if isinstance(value, Tensor) and value.numel() == 1 else value for key, value in group.items()
    }
    return {**options, "foreach": False, "fused": False}


def _sgd(name: str, group: Mapping[str, Any], parameter: Tensor, present: State) -> State:
    if group["momentum"] == 0:
        return {}
    if "momentum_buffer" in present:
        return {"momentum_buffer": present["momentum_buffer"].detach().clone()}
    if group["dampening"] != 0:
        # torch starts the buffer with the undamped gradient; no starting value makes the damped rule do that.
        raise UnsupportedError(
            f"SGD with dampening treats its first step differently ({name}): set dampening=0 or run one step first"
        )
    return {"momentum_buffer": torch.zeros_like(parameter, requires_grad=False).detach()}


_RULES: Mapping[type[Optimizer], Callable[[str, Mapping[str, Any], Tensor, State], State]] = {SGD: _sgd}


def keys(states: Mapping[str, State]) -> Sequence[tuple[str, str]]:
    """All (parameter, key) pairs in order."""
    return [(name, key) for name, state in states.items() for key in state]
