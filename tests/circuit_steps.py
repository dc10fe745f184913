"""A circuit's step with drawn data, for tasks that are trained exactly."""

from random import Random

from pol.zk.circuits import load_circuit
from pol.zk.fixed_point import Integers, integers
from pol.zk.step_data import NetworkStep, network_step

CIRCUIT = "linear_regression"
STEPS, INTERVAL = 12, 3


def drawn_step(size: float = 1.0, circuit: str = CIRCUIT, steps: int = STEPS) -> NetworkStep:
    """Data and first vector are below ``size``."""
    network, random = load_circuit(circuit).network, Random(1)
    most = int(size * (1 << network.scale))

    def drawn(place: int) -> Integers:
        node = network.nodes[place]
        return integers([random.randrange(-most, most) for _ in range(node.size)], node.shape)

    data = [[drawn(place) for place in range(1, len(network.inputs))] for _ in range(steps)]
    return network_step(network, drawn(0), data)
