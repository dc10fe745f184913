"""The optimizer's part of a step: the parameters that it updates, its rule, and the numbers of every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.graph.capture.guards.mutation_guard import mutation_guard
from pol.graph.capture.optimizers import RULES, SQUARES_SCALE, Number, OptimizerRule, OptimizerState, Options
from pol.graph.capture.optimizers.counted_step import CountedStep, counted_step, counts
from pol.graph.capture.optimizers.first_state import first_states
from pol.graph.capture.optimizers.repeated_update import RepeatedUpdates
from pol.graph.capture.optimizers.traced_optimizer import LATER, no_rule, own_state, own_step, require_traceable

TABLE = "schedule"


@dataclass(frozen=True)
class _Member:
    """One parameter that the optimizer updates. Numbers are floats, or names of tables with an entry for each step."""

    group: int
    state: OptimizerState
    numbers: Sequence[Mapping[str, float | str]]
    """For each turn of the optimizer in a step."""
    present: Mapping[str, Any]
    """Its state with what is no tensor; of an optimizer with a rule nothing."""
    counted: Sequence[CountedStep] = ()
    """For each turn, if the own step of the optimizer counts."""


class OptimizerStep:
    """The update of every step. `options` are those of each group at each step; `first` steps were taken before.

    A step has as many updates as `turns`. The names of tables begin with `table`. With `may_count` the own step of an
    optimizer may count in what is no tensor: then only the program knows its numbers.

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
        turns: int = 1,
        table: str = TABLE,
        may_count: bool = True,
    ) -> None:
        self._first, self._turns, self._table = first, turns, table
        self._may_count = may_count and turns == 1
        self.tables: dict[str, Tensor] = {}
        self._optimizer = optimizer
        self._rule = RULES.get(type(optimizer))
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._options = options[0]
        self._fixed = [
            _FixedOptions(optimizer, group, keys)
            for group, keys in zip(options[0], varying_options(options), strict=True)
        ]
        self._known: dict[tuple[int, int], list[Mapping[str, float | str]]] = {}
        self._made: Mapping[int, Mapping[str, Any]] = {}
        self._counts: dict[tuple[object, ...], CountedStep] = {}
        if self._rule is None:
            require_traceable(optimizer)
            self._made = first_states(optimizer)
        else:
            self._require_same_state(self._rule, options)
        with nullcontext() if self._rule is not None else mutation_guard({"optimizer": optimizer}):
            found = dict(self._members(options))
        self._members_by_name = {name: found[name] for name in parameters if name in found}
        self.initial = {name: member.state for name, member in self._members_by_name.items()}
        counted = any(member.counted for member in found.values())
        self._group_numbers = [] if self._rule or counted else list(self._varying(options))

    def scale(self, key: str) -> int:
        """The scale of the slots with this key in distances."""
        return SQUARES_SCALE if self._rule is not None and key in self._rule.squares else 0

    def __call__(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        states: Mapping[str, OptimizerState],
        entries: Mapping[str, Tensor],
        turn: int = 0,
    ) -> tuple[dict[str, Tensor], dict[str, OptimizerState]]:
        """Next value and next state of every parameter that has a gradient; `entries` are this step's of the tables.

        A rule computes in float32, whatever the type of the parameter, and rounds once at its end.
        """
        if any(member.counted for member in self._members_by_name.values()):
            return self._counted_updates(parameters, gradients, states, entries)
        if self._rule is None:
            numbers = [{key: _entry(value, entries) for key, value in group.items()} for group in self._group_numbers]
            groups = [{**options, **numbers[index]} for index, options in enumerate(self._options)]
            present = {name: member.present for name, member in self._members_by_name.items()}
            return own_step(self._optimizer, self._names, groups, parameters, gradients, states, present)
        after: dict[str, Tensor] = {}
        next_states: dict[str, OptimizerState] = {}
        repeated = RepeatedUpdates()
        for name, gradient in gradients.items():
            member, state = self._members_by_name[name], states[name]
            kind = (member.group, id(member.numbers), tuple(state))
            update = partial(self._updated, self._rule, member, tuple(state), entries, turn)
            value, *moved = repeated.run(kind, update, [parameters[name], gradient, *state.values()])
            after[name], next_states[name] = value, dict(zip(state, moved, strict=True))
        return after, next_states

    def _updated(
        self,
        rule: OptimizerRule,
        member: _Member,
        keys: Sequence[str],
        entries: Mapping[str, Tensor],
        turn: int,
        parameter: Tensor,
        gradient: Tensor,
        *state: Tensor,
    ) -> list[Tensor]:
        """The next value and the next state of a parameter, in the order of the keys."""
        value, next_state = rule.update(
            self._fixed[member.group],
            parameter.detach().float(),
            gradient.float(),
            {key: tensor.float() for key, tensor in zip(keys, state, strict=True)},
            {key: _entry(number, entries) for key, number in member.numbers[turn].items()},
        )
        moved = [next_state[key].to(tensor.dtype) for key, tensor in zip(keys, state, strict=True)]
        return [value.to(parameter.dtype), *moved]

    def _counted_updates(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        states: Mapping[str, OptimizerState],
        entries: Mapping[str, Tensor],
    ) -> tuple[dict[str, Tensor], dict[str, OptimizerState]]:
        after: dict[str, Tensor] = {}
        next_states: dict[str, OptimizerState] = {}
        for name, gradient in gradients.items():
            member = self._members_by_name[name]
            group = {**self._optimizer.param_groups[member.group], **self._options[member.group]}
            state = {**member.present, **states[name]}
            after[name], kept = member.counted[0].run(group, parameters[name], gradient, state, entries)
            if set(kept) != set(states[name]):
                raise no_rule(self._optimizer, "its first step makes state from the gradient", LATER)
            next_states[name] = {key: kept[key] for key in states[name]}
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
        given = self._optimizer.state.get(parameter, {})
        present: Mapping[str, Any] = {key: value for key, value in given.items() if value is not None}
        if self._rule is None:
            present = present or self._made.get(id(parameter), {})
            group = self._optimizer.param_groups[index]
            if not self._may_count or not counts(self._optimizer, group, parameter, present):
                return _Member(index, own_state(present), [], present)
            return _Member(index, own_state(present), [], present, [self._counted(index, parameter, present, options)])
        made = self._rule.initial(options[0][index], parameter.detach())
        state = {key: present.get(key, value).detach().clone() for key, value in made.items()}
        taken = int(present["step"]) if "step" in present else int(any(key in present for key in made))
        if (index, taken) not in self._known:
            course = [groups[index] for groups in options]
            before = taken - self._first * self._turns
            self._known[index, taken] = [self._numbers(self._rule, course, before, turn) for turn in range(self._turns)]
        return _Member(index, state, self._known[index, taken], {})

    def _counted(
        self, index: int, parameter: Tensor, present: Mapping[str, Any], options: Sequence[Sequence[Options]]
    ) -> CountedStep:
        """The step of a parameter, shared by those of the same shape and counters in a group."""
        plain = {key: value for key, value in present.items() if not isinstance(value, Tensor)}
        key = (index, parameter.shape, parameter.dtype, repr(plain))
        if key not in self._counts:
            course = [groups[index] for groups in options]
            self._counts[key] = counted_step(self._optimizer, course, parameter, present, self._number)
        return self._counts[key]

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

    def _numbers(
        self, rule: OptimizerRule, options: Sequence[Options], taken: int, turn: int
    ) -> Mapping[str, float | str]:
        # Steps of the past, which are not executed, count from the first one.
        places = range(taken + turn + 1, taken + turn + 1 + len(options) * self._turns, self._turns)
        steps = [rule.numbers(entry, max(1, place)) for place, entry in zip(places, options, strict=True)]
        return {key: self._number(key, np.array([float(numbers[key]) for numbers in steps])) for key in steps[0]}

    def _number(self, key: str, values: NDArray[np.float64]) -> float | str:
        """The number itself if it is the same in every step, else the name of a table of its values."""
        if not np.isfinite(values).all():
            raise UnsupportedError(f"{type(self._optimizer).__name__}: {key} is not finite in some step")
        if (values == values[0]).all():
            return float(values[0])
        table = torch.from_numpy(values.astype(np.float32))
        prefix = f"{self._table}.{key}."
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
