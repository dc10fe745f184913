"""Adafactor: second moments of a matrix from those of its rows and columns (Shazeer and Stern, 2018)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adafactor

from pol.graph.capture.optimizers.rule import Number, Numbers, OptimizerState, Options, defines, minus, plus


@defines(Adafactor)
class AdafactorRule:
    """torch.optim.Adafactor."""

    squares = frozenset({"variance", "row_var", "col_var"})

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """Sums over rows and columns of the last two dimensions; a vector keeps its own second moment."""
        if parameter.dim() < 2:
            return {"variance": torch.zeros_like(parameter)}
        return {"row_var": torch.zeros_like(parameter[..., :1]), "col_var": torch.zeros_like(parameter[..., :1, :])}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """The step size is relative to the parameter, and falls with the square root of the steps."""
        return {
            "fresh": step ** options["beta2_decay"],
            "rho": min(options["lr"], 1 / math.sqrt(step)),
            "decay": 1 - options["lr"] * options["weight_decay"],
        }

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= scale * gradient / sqrt(variance), the update clipped to the norm `d`."""
        small, least = options["eps"]
        small = torch.finfo(parameter.dtype).eps if small is None else small
        gradient = -gradient if options["maximize"] else gradient
        root = math.sqrt(parameter.numel())
        scale = (torch.linalg.vector_norm(parameter) / root).clamp(min=least) * numbers["rho"]
        squares = gradient * gradient
        after = {}
        if gradient.dim() < 2:
            variance = after["variance"] = _moved(state["variance"], squares, numbers["fresh"])
        else:
            row = after["row_var"] = _moved(state["row_var"], squares.mean(-1, keepdim=True), numbers["fresh"])
            column = after["col_var"] = _moved(state["col_var"], squares.mean(-2, keepdim=True), numbers["fresh"])
            variance = row / row.mean(-2, keepdim=True).clamp(min=small) * column
        direction = gradient * variance.clamp(min=small * small).rsqrt()
        clipped = (torch.linalg.vector_norm(direction) / (root * options["d"])).clamp(min=1.0)
        return minus(parameter * numbers["decay"], direction, scale / clipped), after


def _moved(average: Tensor, value: Tensor, share: Number) -> Tensor:
    return plus(average, value - average, share)
