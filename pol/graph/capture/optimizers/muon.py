"""Muon: momentum whose matrix is made orthogonal (Jordan et al., 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Muon
from torch.optim._muon import _zeropower_via_newtonschulz

from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines, minus, plus


@defines(Muon)
class MuonRule:
    """torch.optim.Muon. The iteration is torch's own function, in bfloat16."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """One average."""
        return {"momentum_buffer": torch.zeros_like(parameter)}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """Nothing depends on the step but a schedule."""
        return {
            "lr": options["lr"],
            "decay": 1 - options["lr"] * options["weight_decay"],
            "momentum": options["momentum"],
            "fresh": 1 - options["momentum"],
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter = decay * parameter - lr * ratio * orthogonal(average)."""
        average = plus(state["momentum_buffer"], gradient - state["momentum_buffer"], numbers["fresh"])
        ahead = plus(gradient, average - gradient, numbers["momentum"]) if options["nesterov"] else average
        matrix = _zeropower_via_newtonschulz(
            ahead, options["ns_coefficients"], options["ns_steps"], options["eps"]
        ).float()
        rate = numbers["lr"] * _ratio(options["adjust_lr_fn"], *parameter.shape)
        return minus(parameter * numbers["decay"], matrix, rate), {"momentum_buffer": average}


def _ratio(kind: str | None, rows: int, columns: int) -> float:
    """The step size relative to the learning rate."""
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
