"""The interface of optimizer rules, and the table of optimizers that have one.

The user's optimizer gives the options, the parameter groups and the state that it already has. The rule gives the
update of its `step` as ordinary torch operations without side effects. Numbers that depend on the step alone are
computed before the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

OptimizerState: TypeAlias = dict[str, Tensor]
Options: TypeAlias = Mapping[str, Any]
Number: TypeAlias = Tensor | float
"""A float if it is the same in every step, else a scalar tensor: the entry of this step in a table."""
Numbers: TypeAlias = Mapping[str, Number]


class OptimizerRule(Protocol):
    """The update of one parameter by one kind of optimizer. Options are those of the parameter's group."""

    squares: frozenset[str]
    """Keys of the state that average squared gradients: they are small, so distances see them scaled."""

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """The state before the first step; state that the optimizer already has replaces it, key by key."""
        ...

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """Numbers of the update that depend on options and step alone, in binary64; steps are counted from 1.

        `options` are those that a learning-rate schedule gives for this step.
        """
        ...

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """The next parameter and state, all in float32; nothing may be written in place.

        Of `options` only flags may be used (`nesterov`): numbers are those of the first step. Reading one that a
        schedule changes raises UnsupportedError.
        """
        ...


RULES: dict[type[Optimizer], OptimizerRule] = {}
"""By the exact type of the optimizer: a subclass may do anything."""

Rule = TypeVar("Rule", bound=type[OptimizerRule])


SQUARES_SCALE = 12
"""Scale of slots that hold averages of squares: distances see 2^-52, and numbers below 2^11."""


def defines(*optimizers: type[Optimizer]) -> Callable[[Rule], Rule]:
    """Decorator: the class is the rule of these optimizers."""

    def register(rule: Rule) -> Rule:
        for optimizer in optimizers:
            RULES[optimizer] = rule()
        return rule

    return register


def plus(value: Tensor, direction: Tensor, factor: Number) -> Tensor:
    """`value + factor * direction`."""
    if isinstance(factor, Tensor):
        return value + direction * factor
    return torch.add(value, direction, alpha=factor)


def minus(value: Tensor, direction: Tensor, factor: Number) -> Tensor:
    """`value - factor * direction`."""
    if isinstance(factor, Tensor):
        return value - direction * factor
    return torch.add(value, direction, alpha=-factor)


def downhill(options: Options, parameter: Tensor, gradient: Tensor, penalty: Number) -> Tensor:
    """The gradient to descend: negated with `maximize`, plus that of a penalty on the squared weights."""
    gradient = -gradient if options["maximize"] else gradient
    return gradient if is_zero(penalty) else plus(gradient, parameter, penalty)


def is_zero(number: Number) -> bool:
    """Whether a number is 0 in every step."""
    return not isinstance(number, Tensor) and number == 0
