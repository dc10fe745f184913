"""The update of SGD with momentum for a given gradient: v = m v + g, w = w - lr v."""

from torch import Tensor

from pol.zk.step_functions import join, split

PARAMETERS = 256
SHAPES = ((1, PARAMETERS), (1, PARAMETERS))
INPUTS = {"theta": (1, 2 * PARAMETERS), "gradient": (1, PARAMETERS)}


def step(theta: Tensor, gradient: Tensor) -> Tensor:
    """Weights and velocities after the update, shape (1, 512)."""
    weight, velocity = split(theta, SHAPES)
    moved = velocity * 0.875 + gradient
    return join([weight - moved * 2.0**-6, moved])
