"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adam, AdamW

from pol.graph.capture.optimizers.rule import Number, Numbers, OptimizerState, Options, defines, downhill, minus, plus


def moments(state: OptimizerState, gradient: Tensor, numbers: Numbers) -> tuple[Tensor, Tensor, OptimizerState]:
    """The next first and second moment, and both as state."""
    first = plus(state["exp_avg"], gradient - state["exp_avg"], numbers["fresh1"])
    second = plus(state["exp_avg_sq"] * numbers["beta2"], gradient * gradient, numbers["fresh2"])
    return first, second, {"exp_avg": first, "exp_avg_sq": second}


def shares(options: Options) -> dict[str, float]:
    """Decays of the moments, and of the parameter by itself or through the gradient."""
    beta1, beta2 = options["betas"]
    decoupled = bool(options.get("decoupled_weight_decay", False))
    return {
        "fresh1": 1 - beta1,
        "beta2": beta2,
        "fresh2": 1 - beta2,
        "decay": 1 - options["lr"] * options["weight_decay"] if decoupled else 1.0,
        "penalty": 0.0 if decoupled else options["weight_decay"],
    }


def kept(parameter: Tensor, decay: Number) -> Tensor:
    """The parameter after its own decay, which may be none."""
    return parameter if not isinstance(decay, Tensor) and decay == 1 else parameter * decay


@defines(Adam, AdamW)
class AdamRule:
    """torch.optim.Adam and AdamW, with or without AMSGrad.

    torch divides by `sqrt(v) / sqrt(bias2) + eps`. Here both sides of that quotient are multiplied by `sqrt(bias2)`,
    so that every correction is a number of the step and each element costs one root and one division.
    """

    squares = frozenset({"exp_avg_sq", "max_exp_avg_sq"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """First and second moment, and the greatest second moment of AMSGrad."""
        keys = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if options["amsgrad"] else [])]
        return {key: torch.zeros_like(parameter) for key in keys}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """Learning rate and epsilon with the bias corrections in them."""
        beta1, beta2 = options["betas"]
        root = math.sqrt(1 - beta2**step)
        return {"rate": options["lr"] * root / (1 - beta1**step), "epsilon": options["eps"] * root, **shares(options)}

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter = decay * parameter - rate * m / (sqrt(v) + epsilon)."""
        gradient = downhill(options, parameter, gradient, numbers["penalty"])
        first, second, after = moments(state, gradient, numbers)
        if options["amsgrad"]:
            after["max_exp_avg_sq"] = second = torch.maximum(state["max_exp_avg_sq"], second)
        return minus(
            kept(parameter, numbers["decay"]), first / (second.sqrt() + numbers["epsilon"]), numbers["rate"]
        ), after
