"""The own `step` of an optimizer that counts its steps: numbers that follow from a counter become tables.

The step is run in advance on tensors without numbers, once for each step of the training. Every run has to be the same
operations; where a number among their arguments differs from run to run, the trace takes it from a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pol.errors import UnsupportedError
from pol.graph.capture.guards.reachable_objects import is_plain, is_same
from pol.graph.capture.optimizers.rule import OptimizerState, Options
from pol.graph.capture.optimizers.traced_optimizer import no_rule

_READ = "aten._local_scalar_dense.default"
Place = int | str
"""Of an argument: its position, or its keyword."""


@dataclass(frozen=True)
class NumberedCall:
    """An operation with numbers among its arguments: those that are the same in all steps, or the names of tables."""

    operation: str
    numbers: Mapping[Place, float | str]


class CountedStep:
    """The calls of one parameter's update in each step, and the numbers of counters that the first step reads."""

    def __init__(self, optimizer: Optimizer, calls: Sequence[NumberedCall], reads: Sequence[float]) -> None:
        self._optimizer, self._calls, self._reads = optimizer, calls, reads

    def run(
        self,
        group: Options,
        parameter: Tensor,
        gradient: Tensor,
        state: Mapping[str, Any],
        entries: Mapping[str, Tensor],
    ) -> tuple[Tensor, OptimizerState]:
        """The next parameter and the tensors of its next state; `entries` are this step's of the tables."""
        parameter.grad = gradient.clone()  # a step may write into it
        shadow, kept = _shadow(self._optimizer, group, parameter, state)
        before = dict(vars(shadow))
        with _Replacing(self._optimizer, self._calls, self._reads, entries):
            shadow.step()
        for name, value in vars(shadow).items():
            if not is_plain(value) and before.get(name) is not value:
                raise no_rule(
                    self._optimizer,
                    f"its step changes its attribute {name!r}, which every step would find as it is now",
                )
        return parameter.detach(), {key: value for key, value in kept[parameter].items() if isinstance(value, Tensor)}


def counts(optimizer: Optimizer, group: Options, parameter: Tensor, present: Mapping[str, Any]) -> bool:
    """Whether a step reads a counter, or changes a plain value: in a parameter's state, in its group, an attribute.

    The caller guards what the optimizer shares with its copy.
    """
    return any(_counts(optimizer, group, parameter, _of_meta(present, scalars)) for scalars in (False, True))


def _counts(optimizer: Optimizer, group: Options, parameter: Tensor, present: Mapping[str, Any]) -> bool:
    member = _without_numbers(parameter)
    member.grad = torch.empty_like(member)
    shadow, state = _shadow(optimizer, dict(group), member, present)
    before = [dict(shadow.param_groups[0]), dict(state[member]), dict(vars(shadow))]
    noted = _Noting()
    try:
        with noted:
            shadow.step()
    except Exception:  # noqa: BLE001  # it's the user's code, and the trace says why
        return False
    if noted.reads:
        return True
    after = [shadow.param_groups[0], state[member], vars(shadow)]
    return any(
        is_plain(new.get(key)) and not is_same(old.get(key), new.get(key))
        for old, new in zip(before, after, strict=True)
        for key in new
    )


def counted_step(
    optimizer: Optimizer,
    course: Sequence[Options],
    parameter: Tensor,
    present: Mapping[str, Any],
    table: Callable[[str, Any], float | str],
) -> CountedStep:
    """The calls of an update for all steps; `course` are the options of the group at each, `table` keeps numbers.

    Raises:
        UnsupportedError: a step is of other operations than the first.
    """
    reads: list[float] = []
    try:
        runs = list(_runs(optimizer, course, parameter, _of_meta(present, scalars=True), reads))
    except UnsupportedError:
        # A tensor without dimensions is no counter, but follows from gradients.
        reads = []
        runs = list(_runs(optimizer, course, parameter, _of_meta(present, scalars=False), reads))
    first = runs[0]
    for step, run in enumerate(runs):
        if run.course != first.course:
            raise no_rule(optimizer, f"its step {step + 1} is of other operations than its first")
    calls = []
    for place, (operation, numbers) in enumerate(first.calls):
        values = {key: np.array([run.calls[place][1][key] for run in runs], np.float64) for key in numbers}
        stem = operation.split(".")[1].strip("_")
        calls.append(NumberedCall(operation, {key: table(stem, column) for key, column in values.items()}))
    return CountedStep(optimizer, calls, reads)


def _runs(
    optimizer: Optimizer, course: Sequence[Options], parameter: Tensor, present: Mapping[str, Any], reads: list[float]
) -> Iterator[_Noting]:
    """The operations of every step; ``reads`` takes what the first one reads."""
    member = _without_numbers(parameter)
    shadow, state = _shadow(optimizer, course[0], member, present)
    group, last = shadow.param_groups[0], course[0]
    for step, options in enumerate(course):
        # What the step itself writes into its group stays; a schedule changes the rest.
        group.update({key: value for key, value in options.items() if not is_same(last.get(key), value)})
        last = options
        member.grad = torch.empty_like(member)
        noted = _Noting({"parameter": member, "gradient": member.grad, "state": state[member], "group": group})
        try:
            with noted:
                shadow.step()
        except Exception as error:
            text = str(error).strip().partition("\n")[0][:240]
            raise no_rule(optimizer, f"its step cannot be traced ({type(error).__name__}: {text})") from error
        if step == 0:
            reads += noted.reads
        noted.keep(state[member])
        yield noted


def _shadow(
    optimizer: Optimizer, group: Options, parameter: Tensor, state: Mapping[str, Any]
) -> tuple[Any, defaultdict[Tensor, dict[str, Any]]]:
    """An optimizer of this one parameter."""
    shadow: Any = object.__new__(type(optimizer))
    shadow.__dict__.update({key: value for key, value in vars(optimizer).items() if key != "step"})
    kept: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    kept[parameter].update(state)
    shadow.state = kept
    shadow.param_groups = [{**group, "foreach": False, "fused": False, "params": [parameter]}]
    return shadow, kept


def _without_numbers(parameter: Tensor) -> nn.Parameter:
    return nn.Parameter(torch.empty_like(parameter, device="meta"))


def _of_meta(state: Mapping[str, Any], scalars: bool) -> dict[str, Any]:
    """The state without numbers; with ``scalars`` those of tensors without dimensions, which may be counters, stay."""

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.detach().clone() if scalars and value.dim() == 0 else value.to("meta")

    return {key: moved(value) for key, value in state.items()}


def _numbers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[Place, float]:
    pairs: list[tuple[Place, Any]] = [*enumerate(args), *kwargs.items()]
    return {place: value for place, value in pairs if isinstance(value, int | float) and not isinstance(value, bool)}


class _Noting(TorchDispatchMode):
    """Notes the operations of a step: which tensors and constants each one takes, and the numbers among its arguments.

    A tensor is known by its name before the step, or by the operation that makes it: `course` is the same for two steps
    of the same operations on the same tensors.
    """

    def __init__(self, names: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self.calls: list[tuple[str, dict[Place, float]]] = []
        self.course: list[Any] = []
        self.reads: list[float] = []
        # The tensors stay alive, so that no other one takes the place of their id.
        self._labels: dict[int, tuple[str, Tensor]] = {}
        self._label("", names)

    def _label(self, name: str, item: Any) -> None:
        for key, value in item.items():
            if isinstance(value, Mapping):
                self._label(f"{name}{key}.", value)
            elif isinstance(value, Tensor):
                self._labels[id(value)] = (f"{name}{key}", value)

    def keep(self, state: Mapping[str, Any]) -> None:
        """Note which tensors are the state after the step."""
        self.course.append({key: self._known(value) for key, value in state.items() if isinstance(value, Tensor)})

    def _known(self, tensor: Tensor) -> str:
        return self._labels.setdefault(id(tensor), (f"tensor {id(tensor)}", tensor))[0]

    def _taken(self, func: OpOverload, item: Any) -> Any:
        if not isinstance(item, Tensor):
            return "number"
        # A number in Python code, as in torch.tensor(0.5), is a new tensor in each step.
        is_literal = func in _LITERALS and item.device.type == "cpu"
        return repr(item.tolist()) if is_literal else self._known(item)

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation."""
        keywords = kwargs or {}
        if func.namespace == "profiler":  # torch marks each step of an optimizer
            return func(*args, **keywords)
        numbers = _numbers(args, keywords)
        if numbers:
            self.calls.append((str(func), numbers))
        pairs = [*enumerate(args), *keywords.items()]
        taken = [
            (place, self._taken(func, item))
            if isinstance(item, Tensor) or place in numbers
            else (place, [self._known(leaf) if isinstance(leaf, Tensor) else repr(leaf) for leaf in tree_leaves(item)])
            for place, item in pairs
        ]
        result = func(*args, **keywords)
        for place, leaf in enumerate(tree_leaves(result)):
            if isinstance(leaf, Tensor) and id(leaf) not in self._labels:
                self._labels[id(leaf)] = (f"result {place} of {len(self.course)}", leaf)
        self.course.append((str(func), taken))
        if str(func) == _READ:
            self.reads.append(result)
        return result


_LITERALS = {torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default}


class _Replacing(TorchDispatchMode):
    """Puts entries of tables into the operations of a trace, in place of the numbers of the first step."""

    def __init__(
        self, optimizer: Optimizer, calls: Sequence[NumberedCall], reads: Sequence[float], entries: Mapping[str, Tensor]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self._optimizer, self._left, self._reads, self._entries = optimizer, iter(calls), iter(reads), entries

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, or what it is with numbers from tables."""
        keywords = dict(kwargs or {})
        if str(func) == _READ:
            return next(self._reads)
        if not _numbers(args, keywords):
            return func(*args, **keywords)
        call = next(self._left, None)
        if call is None or call.operation != str(func):
            raise no_rule(self._optimizer, f"its step takes another course in a trace, at {func}")
        tables = {place: self._entries[name] for place, name in call.numbers.items() if isinstance(name, str)}
        if not tables:
            return func(*args, **keywords)
        given = [tables.get(place, value) for place, value in enumerate(args)]
        keywords |= {place: entry for place, entry in tables.items() if isinstance(place, str)}
        name = call.operation.split(".")[1]
        formula = _FORMULAS.get(name.rstrip("_"))
        if formula is None:
            raise no_rule(self._optimizer, f"a number of {func} is another one in every step")
        result = formula(*given, **keywords).to(args[0].dtype)
        return args[0].copy_(result) if name.endswith("_") else result


_FORMULAS: Mapping[str, Callable[..., Tensor]] = {
    "add": lambda a, b, alpha=1: a + b * alpha,
    "sub": lambda a, b, alpha=1: a - b * alpha,
    "rsub": lambda a, b, alpha=1: b - a * alpha,
    "mul": torch.mul,
    "div": torch.div,
    "addcmul": lambda a, b, c, value=1: a + b * c * value,
    "addcdiv": lambda a, b, c, value=1: a + b / c * value,
    "lerp": lambda a, b, weight: a + (b - a) * weight,
    "clamp_min": torch.maximum,
    "clamp_max": torch.minimum,
}
"""Operations whose numbers may be tensors."""
