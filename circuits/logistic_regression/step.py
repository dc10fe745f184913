"""Logistic regression: binary cross-entropy, one step of gradient descent."""

from torch import Tensor

from pol.zk.step_functions import binary_cross_entropy, descend, split

FEATURES, BATCH = 16, 16
SHAPES = ((FEATURES, 1), (1, 1))
INPUTS = {"theta": (1, 17), "x": (BATCH, FEATURES), "y": (BATCH, 1)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 17)."""
    weight, bias = parts = split(theta, SHAPES)
    return descend(binary_cross_entropy(x @ weight + bias, y), parts, 2.0**-6)
