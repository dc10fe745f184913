"""AdamW on one vector of weights: its state are two moments and the powers of their decays."""

from __future__ import annotations

import torch
from torch import Tensor

DECAYS = (0.9, 0.999)
MOMENTS = ("first", "second", "powers")
"""The slots of an optimizer's state."""
_WEIGHT_DECAY, _EPSILON = 0.01, 1e-8


def adam_start(weights: Tensor) -> dict[str, Tensor]:
    """The state before the first step."""
    return dict(zip(MOMENTS, (torch.zeros_like(weights), torch.zeros_like(weights), torch.ones(2)), strict=True))


def adam_step(weights: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float) -> dict[str, Tensor]:
    """``weights`` and the moments after a step of AdamW, by the names of their slots."""
    decays = torch.stack([torch.full_like(state["powers"][0], decay) for decay in DECAYS])
    powers = state["powers"] * decays
    first = DECAYS[0] * state["first"] + (1 - DECAYS[0]) * gradient
    second = DECAYS[1] * state["second"] + (1 - DECAYS[1]) * gradient * gradient
    upward = first / (1 - powers[0])
    spread = (second / (1 - powers[1])).sqrt() + _EPSILON
    moved = weights * (1 - rate * _WEIGHT_DECAY) - rate * (upward / spread)
    return {"weights": moved, "first": first, "second": second, "powers": powers}
