"""A two-layer perceptron with ReLU, 8-16-2, squared error, one step of gradient descent."""

import torch
from torch import Tensor

from pol.zk.step_functions import descend, split, squared_error

WIDTHS, BATCH = (8, 16, 2), 16
SHAPES = ((8, 16), (1, 16), (16, 2), (1, 2))
INPUTS = {"theta": (1, 178), "x": (BATCH, 8), "y": (BATCH, 2)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 178)."""
    w1, b1, w2, b2 = parts = split(theta, SHAPES)
    hidden = torch.relu(x @ w1 + b1)
    return descend(squared_error(hidden @ w2 + b2, y), parts, 2.0**-5)
