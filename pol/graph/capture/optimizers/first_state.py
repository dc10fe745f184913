"""The state that an optimizer without a rule makes in its first step, before the step changes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.graph.capture.guards.mutation_guard import mutation_guard

_GRADIENTS = (0.0, 1.0)
"""A state that both give doesn't depend on the gradient."""


class _Noted(dict[Any, Any]):
    """State of a parameter that keeps the first value of every key."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[Any, Any] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self:
            self.first[key] = value.detach().clone() if isinstance(value, Tensor) else value
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value, or the default from now on."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *given: Any, **named: Any) -> None:
        """Set several values."""
        for key, value in dict(*given, **named).items():
            self[key] = value


def first_states(optimizer: Optimizer) -> dict[int, dict[str, Any]]:
    """By the id of a parameter without state: what `step` puts there; nothing where that depends on the gradient.

    The optimizer stays as it is. A step that fails on its own makes nothing.
    """
    found = {}
    with mutation_guard({"optimizer": optimizer}):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad and not optimizer.state.get(parameter) and not parameter.is_meta:
                    found[id(parameter)] = _first_state(optimizer, group, parameter)
    return found


def _first_state(optimizer: Optimizer, group: Mapping[str, Any], parameter: Tensor) -> dict[str, Any]:
    try:
        runs = [_stepped(optimizer, group, parameter, number, {}) for number in _GRADIENTS]
        (_, one), (_, other) = runs
        if set(one.first) != set(other.first) or not all(
            _is_equal(one.first[key], other.first[key]) for key in one.first
        ):
            return {}
        tensors = {key: value for key, value in one.first.items() if isinstance(value, Tensor)}
        # A first value may be one that has been counted already.
        for state in (one.first, tensors):
            again = _stepped(optimizer, group, parameter, _GRADIENTS[-1], state)
            if torch.equal(again[0], runs[-1][0]) and _is_same(again[1], other):
                return state
    except Exception:  # noqa: BLE001  # it's the user's code, and the trace says why
        return {}
    return {}


def _stepped(
    optimizer: Optimizer, group: Mapping[str, Any], parameter: Tensor, gradient: float, state: Mapping[str, Any]
) -> tuple[Tensor, _Noted]:
    """The parameter and its state after a step from a state."""
    member = nn.Parameter(parameter.detach().clone())
    member.grad = torch.full_like(member, gradient)
    kept: defaultdict[Any, _Noted] = defaultdict(_Noted)
    kept[member].update({key: value.clone() if isinstance(value, Tensor) else value for key, value in state.items()})
    shadow: Any = object.__new__(type(optimizer))
    shadow.__dict__.update({key: value for key, value in vars(optimizer).items() if key != "step"})
    shadow.state = kept
    shadow.param_groups = [{**group, "foreach": False, "fused": False, "params": [member]}]
    shadow.step()
    return member.detach(), kept[member]


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return set(one) == set(other) and all(_is_equal(one[key], other[key]) for key in one)


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return bool(type(one) is type(other) and repr(one) == repr(other))
