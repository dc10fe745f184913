"""Stochastic gradient descent, with momentum or with an average of the parameters."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import ASGD, SGD

from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines, downhill, minus, plus


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
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """buffer = momentum * buffer + damped * gradient; parameter -= lr * buffer."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        if "momentum_buffer" not in state:
            return minus(parameter, gradient, numbers["lr"]), {}
        buffer = plus(state["momentum_buffer"] * numbers["momentum"], gradient, numbers["damped"])
        direction = plus(gradient, buffer, numbers["momentum"]) if options["nesterov"] else buffer
        return minus(parameter, direction, numbers["lr"]), {"momentum_buffer": buffer}


@defines(ASGD)
class AsgdRule:
    """torch.optim.ASGD: the average of the parameters is state that nothing reads."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """Step size and share of the next step, and the average."""
        return {
            "eta": torch.full((), options["lr"], dtype=parameter.dtype),
            "mu": torch.ones((), dtype=parameter.dtype),
            "ax": torch.zeros_like(parameter),
        }

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """Step size and share after this step."""
        return {
            "eta": options["lr"] / (1 + options["lambd"] * options["lr"] * step) ** options["alpha"],
            "mu": 1 / max(1, step - options["t0"]),
            "lambd": options["lambd"],
            "weight_decay": options["weight_decay"],
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter = (1 - lambd * eta) * parameter - eta * gradient; ax moves by the share mu."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        eta, mu, ax = state["eta"], state["mu"], state["ax"]
        moved = parameter * (1 - eta * numbers["lambd"]) - gradient * eta
        average = torch.where(mu == 1, moved, ax + (moved - ax) * mu)
        after = {"eta": torch.zeros_like(eta) + numbers["eta"], "mu": torch.zeros_like(mu) + numbers["mu"]}
        return moved, {**after, "ax": average}
