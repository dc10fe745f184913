"""Traces the own `step` of an optimizer without a rule; it may not read numbers of tensors or create state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.optim import LBFGS, Optimizer, SparseAdam
from torch.overrides import TorchFunctionMode

from pol.errors import PolError, UnsupportedError
from pol.graph.capture.guards.reachable_objects import is_same
from pol.graph.capture.optimizers import OptimizerState, Options

_NUMBERS = {Tensor.item, Tensor.tolist, Tensor.__float__, Tensor.__int__, Tensor.__bool__}
_PLACES = {Tensor.__getitem__, Tensor.__setitem__}
LATER = "capture it after one step of your own loop"
READS = "its step reads the numbers of a tensor, which differ from step to step"
_UNDEFINED: Mapping[type[Optimizer], str] = {
    LBFGS: (
        "it computes the loss several times in a step, as often as its numbers ask for, and a step program is static: "
        "use Adam, SGD with momentum or Rprop"
    ),
    SparseAdam: (
        "it takes sparse gradients, which have no definition: give the embeddings sparse=False, and use Adam or AdamW"
    ),
}


def require_traceable(optimizer: Optimizer) -> None:
    """Refuse an optimizer whose own step can't be part of a program, and state that belongs to no parameter.

    Raises:
        UnsupportedError: says what to use.
    """
    for kind, why in _UNDEFINED.items():
        if isinstance(optimizer, kind):
            raise UnsupportedError(f"the optimizer {type(optimizer).__name__} has no definition: {why}")
    _require_state_of_parameters(optimizer, optimizer.state)


def own_state(present: Mapping[str, Any]) -> OptimizerState:
    """Copies of the tensors among the state of a parameter."""
    return {key: value.detach().clone() for key, value in present.items() if isinstance(value, Tensor)}


def own_step(
    optimizer: Optimizer,
    names: Mapping[int, str],
    groups: Sequence[Options],
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    states: Mapping[str, OptimizerState],
    present: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Tensor], dict[str, OptimizerState]]:
    """Run the optimizer's `step` on the given tensors; next values and states of the parameters with a gradient.

    `present` is the state by parameter, with what is no tensor. Parameters change in place, the user's optimizer does
    not. Raises UnsupportedError, with advice.
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
                parameter.grad = gradients[name].clone()  # a step may write into it
                shadow.state[parameter].update({**present[name], **states[name]})
    given = [dict(group) for group in shadow.param_groups]
    versions = [tensor._version for tensor in _tensors(given)]
    attributes = dict(vars(shadow))
    reads = _Reads()
    try:
        with reads:
            shadow.step()
    except PolError:
        raise
    except (DataDependentOutputException, GuardOnDataDependentSymNode) as error:
        raise no_rule(optimizer, READS) from error
    except Exception as error:
        first = str(error).strip().partition("\n")[0][:240]
        raise no_rule(optimizer, f"its step cannot be traced ({type(error).__name__}: {first})") from error
    for before, group in zip(given, shadow.param_groups, strict=True):
        _require_same(optimizer, before, group, "the option {!r} of a parameter group")
    if versions != [tensor._version for tensor in _tensors(given)]:
        raise no_rule(optimizer, "its step writes into an option of a parameter group that the schedule changes")
    _require_same(optimizer, attributes, vars(shadow), "its attribute {!r}")
    _require_state_of_parameters(optimizer, shadow.state)
    after = {name: parameters[name].detach() for name in gradients}
    kept: dict[str, OptimizerState] = {}
    for group in optimizer.param_groups:
        for own in group["params"]:
            name = names[id(own)]
            if name in gradients:
                now = shadow.state[parameters[name]]
                _require_known(optimizer, present[name], now, reads.found)
                kept[name] = {key: now[key] for key in states[name]}
    return after, kept


def _tensors(groups: Sequence[Options]) -> list[Tensor]:
    """Numbers of this step among the options."""
    return [value for group in groups for value in group.values() if isinstance(value, Tensor)]


def _require_same(optimizer: Optimizer, before: Mapping[str, Any], after: Mapping[str, Any], what: str) -> None:
    """Refuse a change of anything but the state of a parameter: it would be a constant of the program."""
    for key in dict.fromkeys([*before, *after]):
        if key not in before or key not in after or not is_same(before[key], after[key]):
            raise no_rule(optimizer, f"its step changes {what.format(key)}, which every step would find as it is now")


def _require_state_of_parameters(optimizer: Optimizer, state: Mapping[Any, Any]) -> None:
    for key in state:
        if not isinstance(key, Tensor):
            raise no_rule(optimizer, f"it keeps the state {key!r}, which belongs to no parameter")


class _Reads(TorchFunctionMode):
    """While active, notes whether a number of a tensor is read, or a mask is used as an index."""

    found = False

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function."""
        is_masked = func in _PLACES and isinstance(args[1], Tensor) and args[1].dtype == torch.bool
        self.found = self.found or is_masked or func in _NUMBERS
        return func(*args, **(kwargs or {}))


def no_rule(optimizer: Optimizer, why: str, instead: str = "") -> UnsupportedError:
    """The error for an optimizer without a rule; ``instead`` is a way out besides the general ones."""
    return UnsupportedError(
        f"the optimizer {type(optimizer).__name__} has no rule, and {why}: {instead and f'{instead}, or '}use one of "
        "pol.graph.capture.optimizers.RULES, or write its rule (docs/guides/capture.md, 'Another optimizer')"
    )


def _require_known(optimizer: Optimizer, before: Mapping[str, Any], after: Mapping[str, Any], reads: bool) -> None:
    """Refuse new state, and a change of state that is no tensor."""
    for key, value in after.items():
        if isinstance(value, Tensor) and not isinstance(before.get(key), Tensor):
            if reads:
                raise no_rule(optimizer, READS)
            raise no_rule(optimizer, f"its first step makes the state {key!r} from the gradient", LATER)
        if not isinstance(value, Tensor) and (key not in before or before[key] != value):
            raise no_rule(optimizer, f"its step changes the state {key!r}, which is no tensor")
