"""Rprop: step sizes that grow while the gradient keeps its sign (Riedmiller and Braun, 1993)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Rprop

from pol.graph.capture.optimizers.rule import Numbers, OptimizerState, Options, defines


@defines(Rprop)
class RpropRule:
    """torch.optim.Rprop."""

    squares = frozenset[str]()

    def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
        """The last gradient, and a step size for each element."""
        return {"prev": torch.zeros_like(parameter), "step_size": torch.full_like(parameter, options["lr"])}

    def numbers(self, options: Options, step: int) -> Mapping[str, float]:
        """None: the learning rate is only the first step size."""
        return {}

    def update(
        self, options: Options, parameter: Tensor, gradient: Tensor, state: OptimizerState, numbers: Numbers
    ) -> tuple[Tensor, OptimizerState]:
        """parameter -= size * sign(gradient), where the sign has not turned."""
        (shrinks, grows), (least, most) = options["etas"], options["step_sizes"]
        gradient = -gradient if options["maximize"] else gradient
        same = gradient * state["prev"]
        factor = torch.where(same > 0, grows, torch.where(same < 0, shrinks, torch.ones_like(same)))
        size = (state["step_size"] * factor).clamp(least, most)
        kept = torch.where(same < 0, torch.zeros_like(gradient), gradient)
        return parameter - kept.sign() * size, {"prev": kept, "step_size": size}
