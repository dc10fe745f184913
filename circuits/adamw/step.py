"""The update of AdamW for a given gradient; powers of the betas, for the bias corrections, are part of the state."""

import torch
from torch import Tensor

from pol.zk.step_functions import join, split

PARAMETERS = 512
SHAPES = ((1, PARAMETERS), (1, PARAMETERS), (1, PARAMETERS), (1, 1), (1, 1))
INPUTS = {"theta": (1, 3 * PARAMETERS + 2), "gradient": (1, PARAMETERS)}
RATE, DECAY, BETA1, BETA2, EPSILON = 2.0**-7, 2.0**-7, 0.875, 1 - 2.0**-7, 2.0**-10


def step(theta: Tensor, gradient: Tensor) -> Tensor:
    """Weights, both averages and both powers after the update, shape (1, 1538)."""
    weight, mean, square, power1, power2 = split(theta, SHAPES)
    mean = mean * BETA1 + gradient * (1 - BETA1)
    square = square * BETA2 + gradient * gradient * (1 - BETA2)
    power1, power2 = power1 * BETA1, power2 * BETA2
    root = torch.sqrt(square / (1 - power2)) + EPSILON
    moved = mean / (1 - power1) / root
    return join([weight - (weight * DECAY + moved) * RATE, mean, square, power1, power2])
