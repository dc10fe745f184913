"""RMSprop, Adagrad and Adadelta: step sizes from the squares of the gradients."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adadelta, Adagrad, RMSprop

from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines, downhill, minus, plus


@defines(RMSprop)
class RmspropRule:
    """torch.optim.RMSprop, centered or not, with or without momentum."""

    squares = frozenset({"square_avg"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """The averages that the options ask for."""
        keys = ["square_avg"]
        keys += ["momentum_buffer"] if options["momentum"] > 0 else []
        keys += ["grad_avg"] if options["centered"] else []
        return {key: torch.zeros_like(parameter) for key in keys}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The options; nothing depends on the step but a schedule."""
        names = ("lr", "alpha", "eps", "momentum", "weight_decay")
        return {**{name: options[name] for name in names}, "fresh": 1 - options["alpha"]}

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= lr * gradient / (sqrt(average of squares) + eps)."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        square = plus(state["square_avg"] * numbers["alpha"], gradient * gradient, numbers["fresh"])
        after, spread = {"square_avg": square}, square
        if "grad_avg" in state:
            mean = plus(state["grad_avg"], gradient - state["grad_avg"], numbers["fresh"])
            after["grad_avg"] = mean
            spread = square - mean * mean
        direction = gradient / (spread.sqrt() + numbers["eps"])
        if "momentum_buffer" in state:
            direction = state["momentum_buffer"] * numbers["momentum"] + direction
            after["momentum_buffer"] = direction
        return minus(parameter, direction, numbers["lr"]), after


@defines(Adagrad)
class AdagradRule:
    """torch.optim.Adagrad."""

    squares = frozenset[str]()
    """The sum of squares is not small: it grows without bound."""

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """The sum of the squares; torch has made it already."""
        return {"sum": torch.full_like(parameter, options["initial_accumulator_value"])}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The learning rate falls with the steps."""
        rate = options["lr"] / (1 + (step - 1) * options["lr_decay"])
        return {"rate": rate, "eps": options["eps"], "weight_decay": options["weight_decay"]}

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= rate * gradient / (sqrt(sum of squares) + eps)."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        total = state["sum"] + gradient * gradient
        return minus(parameter, gradient / (total.sqrt() + numbers["eps"]), numbers["rate"]), {"sum": total}


@defines(Adadelta)
class AdadeltaRule:
    """torch.optim.Adadelta."""

    squares = frozenset({"square_avg", "acc_delta"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """Averages of the squares of gradients and updates."""
        return {key: torch.zeros_like(parameter) for key in ("square_avg", "acc_delta")}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The options; nothing depends on the step but a schedule."""
        names = ("lr", "rho", "eps", "weight_decay")
        return {**{name: options[name] for name in names}, "fresh": 1 - options["rho"]}

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= lr * gradient * sqrt(average of updates + eps) / sqrt(average of squares + eps)."""
        gradient = downhill(options, parameter, gradient, numbers["weight_decay"])
        square = plus(state["square_avg"] * numbers["rho"], gradient * gradient, numbers["fresh"])
        roots = (state["acc_delta"] + numbers["eps"]).sqrt() / (square + numbers["eps"]).sqrt()
        delta = roots * gradient
        moved = plus(state["acc_delta"] * numbers["rho"], delta * delta, numbers["fresh"])
        return minus(parameter, delta, numbers["lr"]), {"square_avg": square, "acc_delta": moved}
