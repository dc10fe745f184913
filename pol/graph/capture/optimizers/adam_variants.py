"""Relatives of Adam: RAdam, NAdam and Adamax."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adamax, NAdam, RAdam

from pol.graph.capture.optimizers.adam import kept, moments, shares
from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines, downhill, minus, plus

RECTIFIED = 5.0
"""Length of the average from which on RAdam divides by the second moment."""


@defines(RAdam)
class RAdamRule:
    """torch.optim.RAdam: the first steps are momentum alone, until the second moment is an average of enough."""

    squares = frozenset({"exp_avg_sq"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """First and second moment."""
        return {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The rate of plain momentum, or of the quotient: one of the two is 0."""
        beta1, beta2 = options["betas"]
        correction = 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * beta2**step / correction
        rate = options["lr"] / (1 - beta1**step)
        found = {**shares(options), "plain": rate, "adaptive": 0.0, "epsilon": 1.0}
        if length > RECTIFIED:
            share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
            found |= {"plain": 0.0, "adaptive": rate * math.sqrt(share * correction), "epsilon": options["eps"]}
        return found

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= plain * m + adaptive * m / (sqrt(v) + epsilon)."""
        gradient = downhill(options, parameter, gradient, numbers["penalty"])
        first, second, after = moments(state, gradient, numbers)
        moved = minus(kept(parameter, numbers["decay"]), first, numbers["plain"])
        return minus(moved, first / (second.sqrt() + numbers["epsilon"]), numbers["adaptive"]), after


@defines(NAdam)
class NAdamRule:
    """torch.optim.NAdam: Adam with Nesterov's momentum, whose share grows with the steps."""

    squares = frozenset({"exp_avg_sq"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """First and second moment, and the product of all shares so far."""
        moments = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
        return {"mu_product": torch.ones((), dtype=parameter.dtype), **moments}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The share of the momentum in this step and the next."""
        beta1, beta2 = options["betas"]
        share, later = (beta1 * (1 - 0.5 * 0.96 ** (number * options["momentum_decay"])) for number in (step, step + 1))
        root = math.sqrt(1 - beta2**step)
        return {
            **shares(options),
            "share": share,
            "later": later,
            "fresh_rate": options["lr"] * (1 - share) * root,
            "rate": options["lr"] * later * root,
            "epsilon": options["eps"] * root,
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= (a * gradient + b * m) / (sqrt(v) + epsilon), with a and b from the product of shares."""
        gradient = downhill(options, parameter, gradient, numbers["penalty"])
        first, second, after = moments(state, gradient, numbers)
        product = after["mu_product"] = state["mu_product"] * numbers["share"]
        by_gradient = numbers["fresh_rate"] / (1 - product)
        by_average = numbers["rate"] / (1 - product * numbers["later"])
        direction = (gradient * by_gradient + first * by_average) / (second.sqrt() + numbers["epsilon"])
        return kept(parameter, numbers["decay"]) - direction, after


@defines(Adamax)
class AdamaxRule:
    """torch.optim.Adamax: the greatest gradient, decayed, in place of the second moment."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """An average and a greatest value."""
        return {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_inf")}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The learning rate has the bias correction in it."""
        beta1, beta2 = options["betas"]
        return {
            "rate": options["lr"] / (1 - beta1**step),
            "fresh1": 1 - beta1,
            "beta2": beta2,
            "eps": options["eps"],
            "weight_decay": options["weight_decay"],
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= rate * m / greatest."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        average = plus(state["exp_avg"], gradient - state["exp_avg"], numbers["fresh1"])
        greatest = torch.maximum(state["exp_inf"] * numbers["beta2"], gradient.abs() + numbers["eps"])
        return minus(parameter, average / greatest, numbers["rate"]), {"exp_avg": average, "exp_inf": greatest}
