"""The exact circuit of a network: rank-one constraints whose only solution is the step by the integer rule.

docs/spec/zk.md, "Exact circuit". Unlike EZKL's it leaves no rounding to the prover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pol.errors import ProtocolError, UnsupportedError
from pol.zk.exact.constraints import Constraints, Sum, number, plus, scaled, summed
from pol.zk.fixed_point import ALIGNED, Integers, evaluate, integers
from pol.zk.network import Kind, Network, Node, exact_scale
from pol.zk.poseidon import WORD_BITS, vector_hash

Sums = npt.NDArray[np.object_]
_LARGEST = 1 << (WORD_BITS - 1)
_MISSING = {Kind.RECIPROCAL, Kind.SQRT}


def public_inputs(network: Network, inputs: Sequence[Integers], context: int) -> list[int]:
    """What a proof of the step shows: the context that it is bound to, and a hash of every input and of the result.

    Raises ProtocolError if a number has more than 24 bits, or the step has no result.
    """
    values = evaluate(network, inputs)
    for place, value in enumerate(values):
        if any(not -_LARGEST <= int(x) < _LARGEST for x in value.ravel()) and network.scales[place] == network.scale:
            raise ProtocolError(
                f"node {place} of the step ({network.nodes[place].kind}) leaves the range of 24 bits: "
                "the exact circuit has no proof of it; scale the data down or lower the learning rate"
            )
    return [context, *(vector_hash(list(value.ravel())) for value in [*inputs, values[-1]])]


def require_exact(network: Network) -> None:
    """Raises UnsupportedError for an operation that the exact circuit doesn't have."""
    for node in network.nodes:
        if node.kind in _MISSING:
            raise UnsupportedError(f"the exact circuit has no {node.kind}: prove this step with EZKL")


def constraints(network: Network, inputs: Sequence[Integers] | None = None, context: int = 0) -> Constraints:
    """The circuit, solved for these inputs; without inputs its rows alone are of use.

    Raises UnsupportedError for an operation that it doesn't have.
    """
    require_exact(network)
    given = inputs or [integers([0] * node.size, node.shape) for node in network.nodes[: len(network.inputs)]]
    shown = public_inputs(network, given, context) if inputs else [0] * (len(given) + 2)
    system = Constraints()
    bound, *hashes = system.publish(shown)
    # A public number that no row names could be any other.
    system.product(bound, bound)
    writer = _Writer(network, system)
    values: list[Sums] = []
    for tensor, hash_ in zip(given, hashes, strict=False):
        variables = [system.variable(int(value)) for value in tensor.ravel()]
        for variable in variables:
            system.word(variable)
        system.require(system.hash(variables), number(1), hash_)
        values.append(_array(variables, tensor.shape))
    for place in range(len(given), len(network.nodes)):
        values.append(writer.node(place, values))
    after = list(values[-1].ravel())
    for terms in after:
        system.word(terms)
    system.require(system.hash(after), number(1), hashes[-1])
    return system


class _Writer:
    """Writes the rows of one node after the other."""

    def __init__(self, network: Network, system: Constraints) -> None:
        self.network = network
        self.system = system
        self._gates: dict[int, Sums] = {}

    def node(self, place: int, values: Sequence[Sums]) -> Sums:
        node = self.network.nodes[place]
        scales = [self.network.scales[operand] for operand in node.operands]
        exact = exact_scale(node, self.network.scale, scales)
        operands = [values[operand] for operand in node.operands]
        if node.kind in ALIGNED:
            operands = [
                _each(partial(scaled, factor=1 << (exact - scale)), operand)
                for operand, scale in zip(operands, scales, strict=True)
            ]
        write = self._gated if node.kind is Kind.GATE else self._exact
        result = write(node, operands)
        shift = exact - self.network.scales[place]
        return _each(lambda terms: self.system.rounded(terms, shift), result) if shift else result

    def _exact(self, node: Node, operands: Sequence[Sums]) -> Sums:
        system = self.system
        match node.kind:
            case Kind.CONSTANT:
                return _array([number(value) for value in node.values], node.shape)
            case Kind.ADD:
                return _both(plus, *operands)
            case Kind.SUB:
                return _both(lambda a, b: plus(a, scaled(b, -1)), *operands)
            case Kind.MUL:
                return _both(system.product, *operands)
            case Kind.SHIFT:
                return operands[0]
            case Kind.MATMUL:
                a, b = operands
                products = [
                    summed([system.product(x, y) for x, y in zip(row, column, strict=True)])
                    for row in a
                    for column in b.T
                ]
                return _array(products, node.shape)
            case Kind.SUM:
                moved = np.moveaxis(operands[0], node.axis, -1)
                flat = moved.reshape(-1, moved.shape[-1])
                return _array([summed(list(row)) for row in flat], node.shape)
            case Kind.RESHAPE:
                return operands[0].reshape(node.shape)
            case Kind.TRANSPOSE:
                return operands[0].T
            case Kind.SLICE:
                return operands[0][..., node.begin : node.begin + node.shape[-1]]
            case Kind.CONCAT:
                return np.concatenate(list(operands), axis=-1)
            case _:
                raise AssertionError(f"{node.kind} is no operation of a network")

    def _gated(self, node: Node, operands: Sequence[Sums]) -> Sums:
        kept, by = operands
        source = node.operands[1]
        # What a gate lets through by itself is above zero where it was before.
        while (origin := self.network.nodes[source]).kind is Kind.GATE and origin.operands[0] == origin.operands[1]:
            source = origin.operands[1]
        if source not in self._gates:
            self._gates[source] = _each(self.system.is_positive, by)
        return _both(self.system.product, kept, self._gates[source])


def _array(sums: Sequence[Sum], shape: tuple[int, ...]) -> Sums:
    array = np.empty(len(sums), dtype=object)
    array[:] = list(sums)
    return array.reshape(shape)


def _each(apply: Callable[[Any], Sum], array: Sums) -> Sums:
    return _array([apply(terms) for terms in array.ravel()], array.shape)


def _both(apply: Callable[[Sum, Sum], Sum], a: Sums, b: Sums) -> Sums:
    wide_a, wide_b = np.broadcast_arrays(a, b)
    pairs = zip(wide_a.ravel(), wide_b.ravel(), strict=True)
    return _array([apply(x, y) for x, y in pairs], wide_a.shape)
