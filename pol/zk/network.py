"""A gradient step as a list of operations on whole tensors: the source of every circuit, proof and program.

docs/spec/zk.md, "Network".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, TypeVar

import rfc8785

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError


class Document(Protocol):
    """A value with a canonical file."""

    def to_json(self) -> bytes:
        """The file."""
        ...


D = TypeVar("D", bound=Document)


def read_document(data: bytes, refusal: str, build: Callable[[Any], D]) -> D:
    """The value that `build` makes of the JSON in an untrusted file.

    Raises ProtocolError, which begins with `refusal`, for anything that its `to_json` would not write.
    """
    raw = canonical_json.parse(data, f"{refusal}: it")
    try:
        found = build(raw)
        is_same = found.to_json() == data
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{refusal}: {error!r}") from error
    if not is_same:
        raise ProtocolError(f"{refusal}: its JSON isn't canonical, or has unknown fields")
    return found


VERSION = 1
MAX_SCALE = 28
MAX_SHIFT = 63
"""Bits of a shift at most."""


class NetworkOp(StrEnum):
    """The operation of a node; docs/spec/zk.md, "Operations"."""

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
    NetworkOp.INPUT: 0,
    NetworkOp.CONSTANT: 0,
    NetworkOp.ADD: 2,
    NetworkOp.SUB: 2,
    NetworkOp.MUL: 2,
    NetworkOp.SHIFT: 1,
    NetworkOp.GATE: 2,
    NetworkOp.MATMUL: 2,
    NetworkOp.SUM: 1,
    NetworkOp.RECIPROCAL: 1,
    NetworkOp.SQRT: 1,
    NetworkOp.RESHAPE: 1,
    NetworkOp.TRANSPOSE: 1,
    NetworkOp.SLICE: 1,
}
"""The number of operands of each operation; a concatenation has any number."""
ALIGNED = frozenset({NetworkOp.ADD, NetworkOp.SUB, NetworkOp.CONCAT})
"""Operations whose operands are brought to one scale first."""


@dataclass(frozen=True)
class NetworkNode:
    """One tensor: its operation, the nodes that it is computed from, its shape.

    ``values``: of a constant, integers at the scale of the network. ``bits``: of a shift, which divides by 2**bits.
    ``axis``: of a sum, which keeps it with size 1. A slice (from ``begin``) and a concatenation are along the last
    dimension; a transposition swaps two dimensions.
    """

    kind: NetworkOp
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
class StepNetwork:
    """Nodes in topological order, the inputs first; the last one is the vector after the step.

    Numbers are integers that stand for multiples of 2**-scale. Input 0 is the vector before the step.
    Raises ProtocolError if a rule of docs/spec/zk.md, "Network", is broken.
    """

    scale: int
    inputs: tuple[str, ...]
    nodes: tuple[NetworkNode, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= MAX_SCALE:
            raise ProtocolError(f"a network's scale is 1 to {MAX_SCALE}, not {self.scale}")
        if not self.inputs or len(self.nodes) <= len(self.inputs):
            raise ProtocolError("a network has an input and a node that isn't one")
        if len(set(self.inputs)) != len(self.inputs):
            raise ProtocolError(f"the inputs of a network have different names, not {', '.join(self.inputs)}")
        for number, node in enumerate(self.nodes):
            if (node.kind is NetworkOp.INPUT) != (number < len(self.inputs)):
                raise ProtocolError(f"node {number}: the inputs come first, and there are {len(self.inputs)}")
            if any(not 0 <= operand < number for operand in node.operands):
                raise ProtocolError(f"node {number} reads a node that isn't before it")
            expected = expected_shape(node, [self.nodes[operand].shape for operand in node.operands])
            if expected is not None and expected != node.shape:
                raise ProtocolError(f"node {number} ({node.kind}) has shape {node.shape}, its operands give {expected}")
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
            if node.kind in {NetworkOp.RECIPROCAL, NetworkOp.SQRT} and scales[node.operands[0]] != self.scale:
                raise ProtocolError(f"node {number}: a {node.kind} is of a number at the scale of the network")
            scales.append(exact if node.kind is NetworkOp.SHIFT else min(exact, self.scale))
        return tuple(scales)

    def shifts(self, number: int) -> tuple[tuple[int, ...], int]:
        """Left shifts that bring a node's operands to one scale, and the right shift that rounds its exact result."""
        node = self.nodes[number]
        scales = [self.scales[operand] for operand in node.operands]
        exact = exact_scale(node, self.scale, scales)
        return tuple(exact - s if node.kind in ALIGNED else 0 for s in scales), exact - self.scales[number]

    def to_json(self) -> bytes:
        """Canonical JSON (RFC 8785)."""
        nodes: list[Any] = [
            {
                "kind": str(node.kind),
                "shape": list(node.shape),
                **({"operands": list(node.operands)} if node.operands else {}),
                **({"values": list(node.values)} if node.kind is NetworkOp.CONSTANT else {}),
                **({"axis": node.axis} if node.kind is NetworkOp.SUM else {}),
                **({"begin": node.begin} if node.kind is NetworkOp.SLICE else {}),
                **({"bits": node.bits} if node.kind is NetworkOp.SHIFT else {}),
            }
            for node in self.nodes
        ]
        return rfc8785.dumps({"version": VERSION, "scale": self.scale, "inputs": list(self.inputs), "nodes": nodes})

    @property
    def digest(self) -> bytes:
        """keccak-256 of the canonical JSON."""
        return keccak256(self.to_json())

    @classmethod
    def from_json(cls, data: bytes) -> StepNetwork:
        """The network in a file. Raises ProtocolError for anything that `to_json` would not write."""
        return read_document(
            data,
            "not a network",
            lambda raw: cls(*_read_scale_and_inputs(raw), tuple(_read_node(entry) for entry in raw["nodes"])),
        )


def exact_scale(node: NetworkNode, scale: int, operands: Sequence[int]) -> int:
    """Scale at which a node's result needs no rounding; a reciprocal's and a root's is the network's."""
    match node.kind:
        case NetworkOp.INPUT | NetworkOp.CONSTANT | NetworkOp.RECIPROCAL | NetworkOp.SQRT:
            return scale
        case NetworkOp.SHIFT:
            return operands[0] + node.bits
        case NetworkOp.MUL | NetworkOp.MATMUL:
            return operands[0] + operands[1]
        case NetworkOp.GATE:
            return operands[0]
        case _:
            return max(operands)


def expected_shape(node: NetworkNode, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Shape of the result by the operands' shapes; None where the node itself determines it.

    Raises ProtocolError if the operands don't fit.
    """
    kind = node.kind
    if not all(type(size) is int and size > 0 for size in node.shape) or not 1 <= len(node.shape) <= 4:
        raise ProtocolError(f"{kind}: {node.shape} is no shape of one to four dimensions")
    if len(shapes) != OPERANDS.get(kind, max(len(shapes), 1)):
        raise ProtocolError(f"{kind} takes {OPERANDS[kind]} operands, got {len(shapes)}")
    match kind:
        case NetworkOp.INPUT:
            return None
        case NetworkOp.CONSTANT:
            return None if len(node.values) == node.size else ()
        case NetworkOp.ADD | NetworkOp.SUB | NetworkOp.MUL | NetworkOp.GATE:
            return broadcast(*shapes)
        case NetworkOp.MATMUL:
            (a, b) = shapes
            return (a[0], b[1]) if len(a) == len(b) == 2 and a[1] == b[0] else ()
        case NetworkOp.SUM:
            if not 0 <= node.axis < len(shapes[0]):
                raise ProtocolError(f"{kind}: {shapes[0]} has no dimension {node.axis}")
            return tuple(1 if axis == node.axis else size for axis, size in enumerate(shapes[0]))
        case NetworkOp.SHIFT:
            if not 0 <= node.bits <= MAX_SHIFT:
                raise ProtocolError(f"{kind}: it divides by 2**0 to 2**{MAX_SHIFT}, not by 2**{node.bits}")
            return shapes[0]
        case NetworkOp.RECIPROCAL | NetworkOp.SQRT:
            return shapes[0]
        case NetworkOp.RESHAPE:
            return None if math.prod(shapes[0]) == node.size else ()
        case NetworkOp.TRANSPOSE:
            return (shapes[0][1], shapes[0][0]) if len(shapes[0]) == 2 else ()
        case NetworkOp.SLICE:
            fits = node.begin >= 0 and node.begin + node.shape[-1] <= shapes[0][-1]
            return (*shapes[0][:-1], node.shape[-1]) if fits else ()
        case NetworkOp.CONCAT:
            same = len({shape[:-1] for shape in shapes}) == 1
            return (*shapes[0][:-1], sum(shape[-1] for shape in shapes)) if same else ()


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that two shapes broadcast to; () if they don't."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x not in {1, y} and y != 1 for x, y in zip(a, b, strict=True)):
        return ()
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def _read_scale_and_inputs(raw: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
    scale, inputs = raw["scale"], raw["inputs"]
    if type(scale) is not int or not all(isinstance(name, str) for name in inputs):
        raise ValueError("the scale is an integer, and inputs have names")
    return scale, tuple(inputs)


def _read_node(entry: dict[str, Any]) -> NetworkNode:
    numbers = [*entry["shape"], *entry.get("operands", ()), *entry.get("values", ())]
    if not all(
        type(number) is int for number in [*numbers, *(entry.get(name, 0) for name in ("axis", "begin", "bits"))]
    ):
        raise ValueError("a node holds integers only")
    return NetworkNode(
        NetworkOp(entry["kind"]),
        tuple(entry["shape"]),
        tuple(entry.get("operands", ())),
        tuple(entry.get("values", ())),
        entry.get("axis", 0),
        entry.get("begin", 0),
        entry.get("bits", 0),
    )
