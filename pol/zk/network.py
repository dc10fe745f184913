"""A gradient step as a list of few operations on whole tensors: what every circuit, proof and program is made from.

docs/spec/zk.md, "Network".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import rfc8785

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError

VERSION = 1
MAX_SCALE = 28


class Kind(StrEnum):
    """What a node does; docs/spec/zk.md, "Operations"."""

    INPUT = "input"
    CONSTANT = "constant"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    SHIFT = "shift"
    GATE = "gate"
    MATMUL = "matmul"
    SUM = "sum"
    RECIPROCAL = "reciprocal"
    SQRT = "sqrt"
    RESHAPE = "reshape"
    TRANSPOSE = "transpose"
    SLICE = "slice"
    CONCAT = "concat"


OPERANDS = {
    Kind.INPUT: 0,
    Kind.CONSTANT: 0,
    Kind.ADD: 2,
    Kind.SUB: 2,
    Kind.MUL: 2,
    Kind.SHIFT: 1,
    Kind.GATE: 2,
    Kind.MATMUL: 2,
    Kind.SUM: 1,
    Kind.RECIPROCAL: 1,
    Kind.SQRT: 1,
    Kind.RESHAPE: 1,
    Kind.TRANSPOSE: 1,
    Kind.SLICE: 1,
}
"""How many operands each kind has; a concatenation has any number."""


@dataclass(frozen=True)
class Node:
    """One tensor: its kind, the nodes it is made from, its shape.

    ``values``: of a constant, integers at the scale of the network. ``bits``: of a shift, which divides by 2**bits.
    ``axis``: of a sum, which keeps it with size 1. A slice (from ``begin``) and a concatenation are along the last
    dimension; a transposition swaps two dimensions.
    """

    kind: Kind
    shape: tuple[int, ...]
    operands: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    axis: int = 0
    begin: int = 0
    bits: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Network:
    """Nodes in topological order, the inputs first; the last one is the vector after the step.

    Numbers are integers that stand for multiples of 2**-scale. Input 0 is the vector before the step.
    Raises ProtocolError if a rule of docs/spec/zk.md, "Network", is broken.
    """

    scale: int
    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= MAX_SCALE:
            raise ProtocolError(f"a network's scale is 1 to {MAX_SCALE}, not {self.scale}")
        if not self.inputs or len(self.nodes) <= len(self.inputs):
            raise ProtocolError("a network has an input and a node that isn't one")
        for number, node in enumerate(self.nodes):
            if (node.kind is Kind.INPUT) != (number < len(self.inputs)):
                raise ProtocolError(f"node {number}: the inputs come first, and there are {len(self.inputs)}")
            if any(not 0 <= operand < number for operand in node.operands):
                raise ProtocolError(f"node {number} reads a node that isn't before it")
            expected = expected_shape(node, [self.nodes[operand].shape for operand in node.operands])
            if expected is not None and expected != node.shape:
                raise ProtocolError(f"node {number} ({node.kind}) has shape {node.shape}, but it makes {expected}")
        if self.nodes[-1].shape != self.nodes[0].shape:
            raise ProtocolError("the vector after the step has another shape than the one before it")
        if self.scales[-1] != self.scale:
            raise ProtocolError(f"the vector after the step has the scale {self.scales[-1]}, not {self.scale}")

    @cached_property
    def scales(self) -> tuple[int, ...]:
        """The scale of every node: no node but a shift has a finer one than the network.

        Raises ProtocolError for a reciprocal or a root of another scale.
        """
        scales: list[int] = []
        for number, node in enumerate(self.nodes):
            exact = exact_scale(node, self.scale, [scales[operand] for operand in node.operands])
            if node.kind in {Kind.RECIPROCAL, Kind.SQRT} and scales[node.operands[0]] != self.scale:
                raise ProtocolError(f"node {number}: a {node.kind} is of a number at the scale of the network")
            scales.append(exact if node.kind is Kind.SHIFT else min(exact, self.scale))
        return tuple(scales)

    def to_json(self) -> bytes:
        """Canonical JSON (RFC 8785)."""
        nodes: list[Any] = [
            {
                "kind": str(node.kind),
                "shape": list(node.shape),
                **({"operands": list(node.operands)} if node.operands else {}),
                **({"values": list(node.values)} if node.kind is Kind.CONSTANT else {}),
                **({"axis": node.axis} if node.kind is Kind.SUM else {}),
                **({"begin": node.begin} if node.kind is Kind.SLICE else {}),
                **({"bits": node.bits} if node.kind is Kind.SHIFT else {}),
            }
            for node in self.nodes
        ]
        return rfc8785.dumps({"version": VERSION, "scale": self.scale, "inputs": list(self.inputs), "nodes": nodes})

    @property
    def digest(self) -> bytes:
        """keccak-256 of the canonical JSON."""
        return keccak256(self.to_json())

    @classmethod
    def from_json(cls, data: bytes) -> Network:
        """The network in a file. Raises ProtocolError for anything that `to_json` would not write."""
        raw = canonical_json.parse(data, "not a network: it")
        try:
            nodes = tuple(_read_node(entry) for entry in raw["nodes"])
            network = cls(raw["scale"], tuple(raw["inputs"]), nodes)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a network: {error!r}") from error
        if network.to_json() != data:
            raise ProtocolError("not a network: its JSON isn't canonical, or has fields that nobody reads")
        return network


def exact_scale(node: Node, scale: int, operands: Sequence[int]) -> int:
    """Scale at which a node's result needs no rounding; a reciprocal's and a root's is the network's."""
    match node.kind:
        case Kind.INPUT | Kind.CONSTANT | Kind.RECIPROCAL | Kind.SQRT:
            return scale
        case Kind.SHIFT:
            return operands[0] + node.bits
        case Kind.MUL | Kind.MATMUL:
            return operands[0] + operands[1]
        case Kind.GATE:
            return operands[0]
        case _:
            return max(operands)


def expected_shape(node: Node, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Shape that a node makes of its operands; None where the node itself says it.

    Raises ProtocolError if the operands don't fit.
    """
    kind = node.kind
    if not all(type(size) is int and size > 0 for size in node.shape) or not 1 <= len(node.shape) <= 4:
        raise ProtocolError(f"{kind}: {node.shape} is no shape of one to four dimensions")
    if len(shapes) != OPERANDS.get(kind, max(len(shapes), 1)):
        raise ProtocolError(f"{kind} takes {OPERANDS[kind]} operands, got {len(shapes)}")
    match kind:
        case Kind.INPUT:
            return None
        case Kind.CONSTANT:
            return None if len(node.values) == node.size else ()
        case Kind.ADD | Kind.SUB | Kind.MUL | Kind.GATE:
            return broadcast(*shapes)
        case Kind.MATMUL:
            (a, b) = shapes
            return (a[0], b[1]) if len(a) == len(b) == 2 and a[1] == b[0] else ()
        case Kind.SUM:
            return tuple(1 if axis == node.axis else size for axis, size in enumerate(shapes[0]))
        case Kind.RECIPROCAL | Kind.SQRT | Kind.SHIFT:
            return shapes[0]
        case Kind.RESHAPE:
            return None if math.prod(shapes[0]) == node.size else ()
        case Kind.TRANSPOSE:
            return (shapes[0][1], shapes[0][0]) if len(shapes[0]) == 2 else ()
        case Kind.SLICE:
            fits = node.begin >= 0 and node.begin + node.shape[-1] <= shapes[0][-1]
            return (*shapes[0][:-1], node.shape[-1]) if fits else ()
        case Kind.CONCAT:
            same = len({shape[:-1] for shape in shapes}) == 1
            return (*shapes[0][:-1], sum(shape[-1] for shape in shapes)) if same else ()


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of an operation element by element; () if there is none."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x not in {1, y} and y != 1 for x, y in zip(a, b, strict=True)):
        return ()
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def _read_node(entry: dict[str, Any]) -> Node:
    numbers = [*entry["shape"], *entry.get("operands", ()), *entry.get("values", ())]
    if not all(
        type(number) is int for number in [*numbers, *(entry.get(name, 0) for name in ("axis", "begin", "bits"))]
    ):
        raise ValueError("a node holds integers only")
    return Node(
        Kind(entry["kind"]),
        tuple(entry["shape"]),
        tuple(entry.get("operands", ())),
        tuple(entry.get("values", ())),
        entry.get("axis", 0),
        entry.get("begin", 0),
        entry.get("bits", 0),
    )
