"""One step on a low-rank adapter of a frozen layer: y = x (W + A B); W is an input with a commitment of its own."""

from torch import Tensor

from pol.zk.step_functions import descend, split, squared_error

WIDTH, RANK, BATCH = 16, 4, 8
SHAPES = ((WIDTH, RANK), (RANK, WIDTH))
INPUTS = {"theta": (1, 2 * WIDTH * RANK), "frozen": (WIDTH, WIDTH), "x": (BATCH, WIDTH), "y": (BATCH, WIDTH)}


def step(theta: Tensor, frozen: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The adapter after the step, shape (1, 128)."""
    down, up = parts = split(theta, SHAPES)
    return descend(squared_error(x @ frozen + x @ down @ up, y), parts, 2.0**-5)
