"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adam, AdamW

from pol.graph.capture.optimizers.rule import Number, OptimizerState, Options, defines, downhill, minus, plus


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
        decoupled = bool(options.get("decoupled_weight_decay", False))
        return {
            "rate": options["lr"] * root / (1 - beta1**step),
            "epsilon": options["eps"] * root,
            "fresh1": 1 - beta1,
            "beta2": beta2,
            "fresh2": 1 - beta2,
            "decay": 1 - options["lr"] * options["weight_decay"] if decoupled else 1.0,
            "penalty": 0.0 if decoupled else options["weight_decay"],
        }

    def update(
        self,
        options: Options,
        parameter: Tensor,
        gradient: Tensor,
        state: OptimizerState,
        numbers: Mapping[str, Number],
    ) -> tuple[Tensor, OptimizerState]:
        """parameter = decay * parameter - rate * m / (sqrt(v) + epsilon)."""
        gradient = downhill(options, parameter, gradient, numbers["penalty"])
        first, second = state["exp_avg"], state["exp_avg_sq"]
        first = plus(first, gradient - first, numbers["fresh1"])
        second = plus(second * numbers["beta2"], gradient * gradient, numbers["fresh2"])
        after = {"exp_avg": first, "exp_avg_sq": second}
        if options["amsgrad"]:
            after["max_exp_avg_sq"] = second = torch.maximum(state["max_exp_avg_sq"], second)
        decay = numbers["decay"]
        kept = parameter if not isinstance(decay, Tensor) and decay == 1 else parameter * decay
        return minus(kept, first / (second.sqrt() + numbers["epsilon"]), numbers["rate"]), after
