"""The exact circuit of a network: rank-one constraints whose only solution is the step by the integer rule.

docs/spec/zk.md, "Exact circuit". Unlike EZKL's it leaves no rounding to the prover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pol.errors import ProtocolError
from pol.zk.exact.constraints import DIVISOR_BITS, Constraints, Sum, number, plus, scaled, summed
from pol.zk.fixed_point import Integers, evaluate, integers, rearranged
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork
from pol.zk.poseidon import WORD_BITS, vector_hash

Sums = npt.NDArray[np.object_]
_LARGEST = 1 << (WORD_BITS - 1)
_DIVISIONS = (NetworkOp.RECIPROCAL, NetworkOp.SQRT)


def public_inputs(network: StepNetwork, inputs: Sequence[Integers], context: int) -> list[int]:
    """The public numbers of a proof: the context that it is bound to, and a hash of every input and of the result.

    Raises ProtocolError if the step has no result, or a number has more bits than the circuit lets it have.
    """
    values = evaluate(network, inputs)
    for place, (value, limit) in enumerate(zip(values, _limits(network), strict=True)):
        if limit and any(not -limit <= int(x) < limit for x in value.ravel()):
            raise ProtocolError(
                f"node {place} of the step ({network.nodes[place].kind}) leaves the range of {limit.bit_length()} bits:"
                " the exact circuit has no proof of it; scale the data down or lower the learning rate"
            )
    return [context, *(vector_hash(list(value.ravel())) for value in [*inputs, values[-1]])]


def _limits(network: StepNetwork) -> list[int]:
    """For each node, the magnitude that its rows, or those of a node that reads it, have bits for; 0: any.

    Sums that are only multiplied or divided by may have more than 24 bits.
    """
    limits = [0] * len(network.nodes)
    for place, node in enumerate(network.nodes):
        if node.kind in _DIVISIONS and not limits[node.operands[0]]:
            limits[node.operands[0]] = 1 << DIVISOR_BITS
        if node.kind is NetworkOp.GATE:
            limits[node.operands[1]] = _LARGEST
        if node.kind in {NetworkOp.INPUT, *_DIVISIONS} or network.shifts(place)[1]:
            limits[place] = _LARGEST
    limits[-1] = _LARGEST
    return limits


def constraints(network: StepNetwork, inputs: Sequence[Integers] | None = None, context: int = 0) -> Constraints:
    """The circuit, solved for these inputs; without inputs its rows alone are of use."""
    given = inputs or [integers([0] * node.size, node.shape) for node in network.nodes[: len(network.inputs)]]
    shown = public_inputs(network, given, context) if inputs else [0] * (len(given) + 2)
    system = Constraints()
    bound, *hashes = system.publish(shown)
    # Without this row the context could be replaced by any other number.
    system.product(bound, bound)
    writer = _ConstraintWriter(network, system)
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


class _ConstraintWriter:
    """Writes the rows of one node after the other."""

    def __init__(self, network: StepNetwork, system: Constraints) -> None:
        self.network = network
        self.system = system
        self._gates: dict[int, Sums] = {}

    def node(self, place: int, values: Sequence[Sums]) -> Sums:
        node = self.network.nodes[place]
        left, right = self.network.shifts(place)
        operands = [
            _each(partial(scaled, factor=1 << bits), values[operand]) if bits else values[operand]
            for operand, bits in zip(node.operands, left, strict=True)
        ]
        write = self._gated if node.kind is NetworkOp.GATE else self._exact
        result = write(node, operands)
        return _each(lambda terms: self.system.rounded(terms, right), result) if right else result

    def _exact(self, node: NetworkNode, operands: Sequence[Sums]) -> Sums:
        system = self.system
        match node.kind:
            case NetworkOp.CONSTANT:
                return _array([number(value) for value in node.values], node.shape)
            case NetworkOp.ADD:
                return _both(plus, *operands)
            case NetworkOp.SUB:
                return _both(lambda a, b: plus(a, scaled(b, -1)), *operands)
            case NetworkOp.MUL:
                return _both(system.product, *operands)
            case NetworkOp.MATMUL:
                a, b = operands
                products = [
                    summed([system.product(x, y) for x, y in zip(row, column, strict=True)])
                    for row in a
                    for column in b.T
                ]
                return _array(products, node.shape)
            case NetworkOp.RECIPROCAL:
                return _each(lambda terms: system.reciprocal(terms, self.network.scale), operands[0])
            case NetworkOp.SQRT:
                return _each(lambda terms: system.square_root(terms, self.network.scale), operands[0])
            case NetworkOp.SUM:
                moved = np.moveaxis(operands[0], node.axis, -1)
                flat = moved.reshape(-1, moved.shape[-1])
                return _array([summed(list(row)) for row in flat], node.shape)
            case _:
                return rearranged(node, operands)

    def _gated(self, node: NetworkNode, operands: Sequence[Sums]) -> Sums:
        kept, by = operands
        source = node.operands[1]
        # The result of a gate by itself (a ReLU) is above zero where its operand is: they share one comparison.
        while (gate := self.network.nodes[source]).kind is NetworkOp.GATE and gate.operands[0] == gate.operands[1]:
            source = gate.operands[1]
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
