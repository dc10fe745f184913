"""Circuits: each is a folder, in circuits/ or the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

import rfc8785

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.zk.fixed_point import Integers, integers, quantize
from pol.zk.network import NetworkNode, StepNetwork

NETWORK, CIRCUIT, MANIFEST, STEP = "network.json", "circuit.json", "manifest.json", "step.py"
MIN_LOGROWS, MAX_LOGROWS = 11, 22


class Visibility(StrEnum):
    """What a proof reveals of the input vectors of a step and of its result."""

    PUBLIC = "public"  # every number
    HASHED = "hashed"  # a Poseidon hash of each vector
    COMMITTED = "polycommit"  # a KZG commitment to each vector


@dataclass(frozen=True)
class Circuit:
    """A network with the settings of its proofs: log2 of the rows for each visibility, base and number of digits.

    Every number that is rounded has an absolute value below ``base ** digits``, or there is no proof. ``examples``: how
    to draw example inputs.
    """

    name: str
    network: StepNetwork
    logrows: dict[Visibility, int]
    base: int
    digits: int
    examples: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.logrows or not all(MIN_LOGROWS <= rows <= MAX_LOGROWS for rows in self.logrows.values()):
            raise ProtocolError(f"circuit {self.name}: log2 of the rows is {MIN_LOGROWS} to {MAX_LOGROWS}")
        if not 2 <= self.base < 1 << min(self.logrows.values()) or not 2 <= self.digits <= 8:
            raise ProtocolError(f"circuit {self.name}: the base is below the rows, and there are 2 to 8 digits")

    @property
    def visibility(self) -> Visibility:
        """The visibility that is named first."""
        return next(iter(self.logrows))

    def digest(self, visibility: Visibility) -> bytes:
        """keccak-256 of everything that the keys depend on, except reference string and version of the prover."""
        settings: dict[str, Any] = {
            "network": self.network.digest.hex(),
            "visibility": str(visibility),
            "logrows": self.logrows_of(visibility),
            "base": self.base,
            "digits": self.digits,
        }
        return keccak256(rfc8785.dumps(settings))

    def logrows_of(self, visibility: Visibility) -> int:
        """log2 of the rows. Raises ProtocolError if the circuit isn't made for this visibility."""
        if visibility not in self.logrows:
            known = ", ".join(self.logrows)
            raise ProtocolError(f"circuit {self.name} is made for {known}, not for {visibility}")
        return self.logrows[visibility]


def folder() -> Path:
    """The folder of the circuits: inside an installed package, or at the top of a checkout.

    Raises OperationalError if there is none.
    """
    package = Path(__file__).parents[1]
    places = [package / "circuits", package.parent / "circuits"]
    for place in places:
        if place.is_dir():
            return place
    raise OperationalError(f"the circuits are missing; looked for {' and '.join(map(str, places))}")


def names() -> list[str]:
    """The names of all circuits of pol."""
    return sorted(path.parent.name for path in folder().glob(f"*/{CIRCUIT}"))


def load_circuit(name: str | Path) -> Circuit:
    """A circuit of pol by its name, or of your own by its folder.

    Raises ProtocolError for malformed files, OperationalError if there are none.
    """
    place = Path(name) if isinstance(name, Path) or "/" in name else folder() / name
    try:
        raw = canonical_json.parse((place / CIRCUIT).read_bytes(), str(place / CIRCUIT))
        network = StepNetwork.from_json((place / NETWORK).read_bytes())
    except FileNotFoundError as error:
        raise OperationalError(f"there is no circuit {name}; pol has {', '.join(names())}") from error
    try:
        logrows = {Visibility(key): int(value) for key, value in raw["logrows"].items()}
        return Circuit(place.name, network, logrows, int(raw["base"]), int(raw["digits"]), raw.get("examples", {}))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"{place / CIRCUIT} is malformed: {error!r}") from error


ONE_HOT = "one-hot"
Range = tuple[int, float, float]
"""A count of numbers, and the bounds to draw them between."""


def example_vectors(circuit: Circuit, seed: int) -> list[Integers]:
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
