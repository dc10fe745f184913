"""A softmax classifier of 8 features and 4 classes, logits of any size, one step of gradient descent."""

from torch import Tensor

from pol.zk.step_functions import descend, split, stable_cross_entropy

BATCH = 8
SHAPES = ((8, 4), (1, 4))
INPUTS = {"theta": (1, 36), "x": (BATCH, 8), "y": (BATCH, 4)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 36)."""
    weight, bias = parts = split(theta, SHAPES)
    return descend(stable_cross_entropy(x @ weight + bias, y), parts, 2.0**-4)
