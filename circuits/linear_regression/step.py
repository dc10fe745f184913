"""Linear regression: y = x w + b, mean squared error, one step of gradient descent."""

from torch import Tensor

from pol.zk.step_functions import descend, split, squared_error

FEATURES, BATCH = 4, 8
SHAPES = ((FEATURES, 1), (1, 1))
INPUTS = {"theta": (1, 5), "x": (BATCH, FEATURES), "y": (BATCH, 1)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 5)."""
    weight, bias = parts = split(theta, SHAPES)
    return descend(squared_error(x @ weight + bias, y), parts, 2.0**-5)
