"""Inputs of a circuit: drawn examples, or from a JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.zk.circuits import Circuit
from pol.zk.fixed_point import Integers, integers, quantize
from pol.zk.network import NetworkNode

ONE_HOT = "one-hot"
Range = tuple[int, float, float]
"""A count of numbers, and the bounds to draw them between."""


def example(circuit: Circuit, seed: int) -> list[Integers]:
    """All inputs of a step: by the circuit's own ranges, else between -0.5 and 0.5; the same for one seed."""
    random = Random(seed)
    names = zip(circuit.network.inputs, circuit.network.nodes, strict=False)
    return [_drawn(random, node, circuit.examples.get(name), circuit.network.scale) for name, node in names]


def read_inputs(circuit: Circuit, path: Path, skip: int = 0) -> list[Integers]:
    """Inputs from a JSON file, but for the first ``skip``: lists of numbers by name, in row-major order.

    Whole numbers of a list named `NAME.integers` are at the network's scale: so the vector after a step goes into the
    next one without rounding. Raises ProtocolError if one is missing or has another size.
    """
    try:
        raw = canonical_json.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise OperationalError(f"can't read {path}: {error}") from error
    if not isinstance(raw, dict):
        raise ProtocolError(f"{path} is an object with a list of numbers for each input")
    network = circuit.network
    found = []
    for name, node in zip(network.inputs[skip:], network.nodes[skip:], strict=False):
        exact, values = f"{name}.integers" in raw, raw.get(f"{name}.integers", raw.get(name))
        if not isinstance(values, list) or len(values) != node.size:
            raise ProtocolError(f"{path}: {name} is a list of {node.size} numbers, row by row")
        if exact and not all(type(value) is int for value in values):
            raise ProtocolError(f"{path}: {name}.integers are whole numbers")
        try:
            found.append(integers(values, node.shape) if exact else quantize(values, network.scale).reshape(node.shape))
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"{path}: {name} holds something that is no number") from error
    return found


def _drawn(random: Random, node: NetworkNode, how: str | Sequence[Range] | None, scale: int) -> Integers:
    if how == ONE_HOT:
        rows = [random.randrange(node.shape[-1]) for _ in range(node.size // node.shape[-1])]
        flat = [int(column == row) << scale for row in rows for column in range(node.shape[-1])]
        return integers(flat, node.shape)
    ranges = [(node.size, -0.5, 0.5)] if how is None or isinstance(how, str) else how
    values = [random.uniform(low, high) for count, low, high in ranges for _ in range(int(count))]
    return quantize(values, scale).reshape(node.shape)
