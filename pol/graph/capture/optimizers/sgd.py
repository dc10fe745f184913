"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import SGD

from pol.graph.capture.optimizers.rule import Number, OptimizerState, Options, defines, downhill, minus, plus


@defines(SGD)
class SgdRule:
    """torch.optim.SGD: momentum, dampening, Nesterov's momentum, weight decay."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """A buffer if there is momentum."""
        return {"momentum_buffer": torch.zeros_like(parameter)} if options["momentum"] != 0 else {}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """torch starts the buffer with the undamped gradient."""
        return {
            "lr": options["lr"],
            "momentum": options["momentum"],
            "damped": 1.0 if step == 1 else 1.0 - options["dampening"],
            "weight_decay": options["weight_decay"],
        }

    def update(
        self,
        options: Options,
        parameter: Tensor,
        gradient: Tensor,
        state: OptimizerState,
        numbers: Mapping[str, Number],
    ) -> tuple[Tensor, OptimizerState]:
        """buffer = momentum * buffer + damped * gradient; parameter -= lr * buffer."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        if "momentum_buffer" not in state:
            return minus(parameter, gradient, numbers["lr"]), {}
        buffer = plus(state["momentum_buffer"] * numbers["momentum"], gradient, numbers["damped"])
        direction = plus(gradient, buffer, numbers["momentum"]) if options["nesterov"] else buffer
        return minus(parameter, direction, numbers["lr"]), {"momentum_buffer": buffer}
