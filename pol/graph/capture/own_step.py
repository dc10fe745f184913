"""An optimizer without a rule: its own `step` is traced, if that reads no number and makes no state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from pol.errors import PolError, UnsupportedError
from pol.graph.capture.optimizers import Options, State


def own_state(optimizer: Optimizer, present: Mapping[str, Any]) -> State:
    """Copies of the tensors among the state of a parameter."""
    return {key: value.detach().clone() for key, value in present.items() if isinstance(value, Tensor)}


def own_step(
    optimizer: Optimizer,
    names: Mapping[int, str],
    groups: Sequence[Options],
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    states: Mapping[str, State],
) -> tuple[dict[str, Tensor], dict[str, State]]:
    """Run the optimizer's `step` on other tensors; next values and states of the parameters with a gradient.

    Parameters change in place. The user's optimizer is not touched. Raises UnsupportedError, with a way out.
    """
    shadow = object.__new__(type(optimizer))
    # A scheduler wraps `step` of the object; the shadow has that of its class.
    shadow.__dict__.update({key: value for key, value in vars(optimizer).items() if key != "step"})
    shadow.state = defaultdict(dict)
    shadow.param_groups = []
    for group, options in zip(optimizer.param_groups, groups, strict=True):
        members = [parameters[names[id(parameter)]] for parameter in group["params"]]
        shadow.param_groups.append({**group, **options, "foreach": False, "fused": False, "params": members})
        for own, parameter in zip(group["params"], members, strict=True):
            name = names[id(own)]
            if name in gradients:
                parameter.grad = gradients[name]
                shadow.state[parameter].update({**optimizer.state.get(own, {}), **states[name]})
    try:
        shadow.step()
    except PolError:
        raise
    except Exception as error:
        raise no_rule(optimizer, f"its step cannot be traced ({type(error).__name__}: {error})") from error
    after = {name: parameters[name].detach() for name in gradients}
    kept: dict[str, State] = {}
    for group in optimizer.param_groups:
        for own in group["params"]:
            name = names[id(own)]
            if name in gradients:
                now = shadow.state[parameters[name]]
                _require_known(optimizer, optimizer.state.get(own, {}), now)
                kept[name] = {key: now[key] for key in states[name]}
    return after, kept


def no_rule(optimizer: Optimizer, why: str) -> UnsupportedError:
    """The refusal of an optimizer that nobody has written a rule for."""
    return UnsupportedError(
        f"the optimizer {type(optimizer).__name__} has no rule, and {why}: use one of "
        "pol.graph.capture.optimizers.RULES, or write its rule (docs/guides/capture.md, 'Another optimizer')"
    )


def _require_known(optimizer: Optimizer, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Only what was a tensor before may change."""
    for key, value in after.items():
        if isinstance(value, Tensor) and not isinstance(before.get(key), Tensor):
            raise no_rule(optimizer, f"its first step makes the state {key!r}, so capture it after that or")
        if not isinstance(value, Tensor) and (key not in before or before[key] != value):
            raise no_rule(optimizer, f"its step changes the state {key!r}, which is no tensor")
