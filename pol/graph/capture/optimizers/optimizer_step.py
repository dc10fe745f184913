"""The optimizer's part of a step: the parameters that it updates, its rule, and the numbers of every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.graph.capture.optimizers import RULES, SQUARES_SCALE, Number, OptimizerRule, OptimizerState, Options
from pol.graph.capture.optimizers.traced_optimizer import own_state, own_step

TABLE = "schedule"


@dataclass(frozen=True)
class _Member:
    """One parameter that the optimizer updates. Numbers are floats, or names of tables with an entry for each step."""

    group: int
    state: OptimizerState
    numbers: Mapping[str, float | str]


class OptimizerStep:
    """The update of every step. `options` are those of each group at each step; `first` steps were taken before.

    `initial` holds copies of its state of every updated parameter, in the order of `parameters`; `tables` the numbers
    that are not the same in all steps, float32 of shape (steps,). Raises UnsupportedError, with what to do, for an
    optimizer that has neither a rule nor a step that can be traced.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        parameters: Mapping[str, Tensor],
        options: Sequence[Sequence[Options]],
        first: int = 0,
    ) -> None:
        self._first = first
        self.tables: dict[str, Tensor] = {}
        self._optimizer = optimizer
        self._rule = RULES.get(type(optimizer))
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._options = options[0]
        self._fixed = [
            _FixedOptions(optimizer, group, keys)
            for group, keys in zip(options[0], varying_options(options), strict=True)
        ]
        self._known: dict[tuple[int, int], Mapping[str, float | str]] = {}
        if self._rule is not None:
            self._require_same_state(self._rule, options)
        found = dict(self._members(options))
        self._members_by_name = {name: found[name] for name in parameters if name in found}
        self.initial = {name: member.state for name, member in self._members_by_name.items()}
        self._group_numbers = [] if self._rule else list(self._varying(options))

    def scale(self, slot: str) -> int:
        """The scale of the slot "parameter:key" in distances."""
        key = slot.rpartition(":")[2]
        return SQUARES_SCALE if self._rule is not None and key in self._rule.squares else 0

    def __call__(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        states: Mapping[str, OptimizerState],
        entries: Mapping[str, Tensor],
    ) -> tuple[dict[str, Tensor], dict[str, OptimizerState]]:
        """Next value and next state of every parameter that has a gradient; `entries` are this step's of the tables.

        A rule computes in float32, whatever the type of the parameter, and rounds once at its end.
        """
        if self._rule is None:
            numbers = [{key: _entry(value, entries) for key, value in group.items()} for group in self._group_numbers]
            groups = [{**options, **numbers[index]} for index, options in enumerate(self._options)]
            return own_step(self._optimizer, self._names, groups, parameters, gradients, states)
        after: dict[str, Tensor] = {}
        next_states: dict[str, OptimizerState] = {}
        for name, gradient in gradients.items():
            parameter, state, member = parameters[name].detach(), states[name], self._members_by_name[name]
            value, next_state = self._rule.update(
                self._fixed[member.group],
                parameter.float(),
                gradient.float(),
                {key: tensor.float() for key, tensor in state.items()},
                {key: _entry(number, entries) for key, number in member.numbers.items()},
            )
            after[name] = value.to(parameter.dtype)
            next_states[name] = {key: next_state[key].to(state[key].dtype) for key in state}
        return after, next_states

    def _members(self, options: Sequence[Sequence[Options]]) -> Iterator[tuple[str, _Member]]:
        for index, group in enumerate(self._optimizer.param_groups):
            for parameter in group["params"]:
                if id(parameter) not in self._names:
                    raise UnsupportedError(
                        "the optimizer updates a tensor that is not a parameter of the model: give it "
                        "model.parameters() of the model that is captured"
                    )
                if parameter.requires_grad:
                    yield self._names[id(parameter)], self._member(index, parameter, options)

    def _member(self, index: int, parameter: Tensor, options: Sequence[Sequence[Options]]) -> _Member:
        present = {key: v for key, v in self._optimizer.state.get(parameter, {}).items() if v is not None}
        if self._rule is None:
            return _Member(index, own_state(self._optimizer, present), {})
        made = self._rule.initial(options[0][index], parameter.detach())
        state = {key: present.get(key, value).detach().clone() for key, value in made.items()}
        taken = int(present["step"]) if "step" in present else int(any(key in present for key in made))
        if (index, taken) not in self._known:
            course = [groups[index] for groups in options]
            self._known[index, taken] = self._numbers(self._rule, course, taken - self._first)
        return _Member(index, state, self._known[index, taken])

    def _require_same_state(self, rule: OptimizerRule, options: Sequence[Sequence[Options]]) -> None:
        """Refuse a schedule that turns momentum on or off: the state would not be the same in every step."""
        sample = torch.zeros(1, 1)
        for index, changing in enumerate(varying_options(options)):
            keys = set(rule.initial(options[0][index], sample)) if changing else set()
            for groups in options if changing else ():
                if set(rule.initial(groups[index], sample)) != keys:
                    raise UnsupportedError(
                        f"the schedule changes {', '.join(changing)} of {type(self._optimizer).__name__} so that its "
                        "state is not the same in every step (as momentum that is zero in some steps, but not in "
                        "all): capture the parts of the training as tasks of their own"
                    )

    def _numbers(self, rule: OptimizerRule, options: Sequence[Options], taken: int) -> Mapping[str, float | str]:
        # Steps of the past, which are not executed, count from the first one.
        steps = [rule.numbers(entry, max(1, taken + step)) for step, entry in enumerate(options, 1)]
        return {key: self._number(key, np.array([float(numbers[key]) for numbers in steps])) for key in steps[0]}

    def _number(self, key: str, values: NDArray[np.float64]) -> float | str:
        """The number itself if it is the same in every step, else the name of a table of its values."""
        if not np.isfinite(values).all():
            raise UnsupportedError(f"{type(self._optimizer).__name__}: {key} is not finite in some step")
        if (values == values[0]).all():
            return float(values[0])
        table = torch.from_numpy(values.astype(np.float32))
        prefix = f"{TABLE}.{key}."
        alike = [name for name in self.tables if name.startswith(prefix)]
        same = next((name for name in alike if torch.equal(self.tables[name], table)), None)
        if same is None:
            same = f"{prefix}{len(alike)}"
            self.tables[same] = table
        return same

    def _varying(self, options: Sequence[Sequence[Options]]) -> Iterator[Mapping[str, float | str]]:
        """By group: the options that a schedule changes, with their values in all steps."""
        for index, changed in enumerate(varying_options(options)):
            course = [groups[index] for groups in options]
            if not all(isinstance(course[0][key], int | float) for key in changed):
                raise UnsupportedError(
                    f"the schedule changes {changed} of {type(self._optimizer).__name__}, which has no rule"
                )
            yield {key: self._number(key, np.array([float(group[key]) for group in course])) for key in changed}


class _FixedOptions(Mapping[str, Any]):
    """The options of all steps. Raises UnsupportedError where a rule reads one that a schedule changes."""

    def __init__(self, optimizer: Optimizer, options: Options, changing: Sequence[str]) -> None:
        self._optimizer = optimizer
        self._options = options
        self._changing = changing

    def __getitem__(self, key: str) -> Any:
        if key in self._changing:
            raise UnsupportedError(
                f"the schedule changes {key!r} of {type(self._optimizer).__name__}, which decides what every step "
                "computes: only numbers such as the learning rate may change during a training. Leave it as it is, or "
                "capture the parts of the training as tasks of their own"
            )
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)


def varying_options(options: Sequence[Sequence[Options]]) -> list[list[str]]:
    """By group: the options that are not the same in all steps."""
    distinct = [groups for groups, before in zip(options[1:], options, strict=False) if groups is not before]
    return [
        [key for key, value in first.items() if any(groups[index][key] != value for groups in distinct)]
        for index, first in enumerate(options[0])
    ]


def _entry(number: float | str, entries: Mapping[str, Tensor]) -> Number:
    return entries[number] if isinstance(number, str) else number
