"""A two-layer perceptron with ReLU, 196-32-10, squared error, one step of gradient descent."""

import torch
from torch import Tensor

from pol.zk.step_functions import descend, split, squared_error

WIDTHS, BATCH = (196, 32, 10), 4
SHAPES = ((196, 32), (1, 32), (32, 10), (1, 10))
INPUTS = {"theta": (1, 6634), "x": (BATCH, 196), "y": (BATCH, 10)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 6634)."""
    w1, b1, w2, b2 = parts = split(theta, SHAPES)
    hidden = torch.relu(x @ w1 + b1)
    return descend(squared_error(hidden @ w2 + b2, y), parts, 2.0**-5)
