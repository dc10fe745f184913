"""Lion: the sign of an average of gradients (Chen et al., 2023). An example of an optimizer that torch doesn't have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines, minus, plus


class Lion(Optimizer):
    """Evolved sign momentum: `p = (1 - lr * weight_decay) * p - lr * sign(b1 * m + (1 - b1) * g)`."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of eager training."""
        with torch.enable_grad():
            loss = closure() if closure is not None else None
        rule = LionRule()
        for options in self.param_groups:
            for parameter in options["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter] or rule.initial(options, parameter)
                    numbers = rule.numbers(options, 1)
                    after, self.state[parameter] = rule.update(options, parameter, parameter.grad, state, numbers)
                    parameter.copy_(after)
        return loss


@defines(Lion)
class LionRule:
    """The whole rule: state, numbers, update."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """One average."""
        return {"exp_avg": torch.zeros_like(parameter)}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """Nothing depends on the step but a schedule."""
        beta1, beta2 = options["betas"]
        return {
            "lr": options["lr"],
            "fresh1": 1 - beta1,
            "fresh2": 1 - beta2,
            "decay": 1 - options["lr"] * options["weight_decay"],
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """The sign of one average moves the parameter, another average is kept."""
        average = state["exp_avg"]
        direction = torch.sign(plus(average, gradient - average, numbers["fresh1"]))
        after = plus(average, gradient - average, numbers["fresh2"])
        return minus(parameter * numbers["decay"], direction, numbers["lr"]), {"exp_avg": after}
