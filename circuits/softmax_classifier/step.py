"""A softmax classifier of 64 features and 10 classes, cross-entropy, one step of gradient descent."""

from torch import Tensor

from pol.zk.step_functions import cross_entropy, descend, split

BATCH = 32
SHAPES = ((64, 10), (1, 10))
INPUTS = {"theta": (1, 650), "x": (BATCH, 64), "y": (BATCH, 10)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 650)."""
    weight, bias = parts = split(theta, SHAPES)
    return descend(cross_entropy(x @ weight + bias, y), parts, 2.0**-6)
