"""The step program of a network: what the court executes, with the integers that the exact circuit proves.

docs/spec/zk.md, "The program". The state is one tensor of float32; the constants hold the data of all steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add, sub

from pol.arithmetic.scalar_program import ScalarProgram
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.node import Affine, Bound, Input, InputKind, Operand, Source
from pol.graph.node import Node as ProgramNode
from pol.graph.node_names import NodeName, ProgramNames
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType, row_major
from pol.zk import integer_words
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork
from pol.zk.poseidon import WORD_BITS

_WORD = 31
"""Magnitudes stay below 2**31."""
_FACTOR = integer_words.LIMB_BITS * integer_words.LIMBS - 1
"""Magnitudes of factors stay below 2**26, so that the limbs hold them."""
_TERMS = 1 << 12
"""Products that a sum has at most, so that partial sums of limbs stay below 2**31."""


def step_program(network: StepNetwork, steps: int) -> StepProgram:
    """The program of ``steps`` steps; constant i holds the values of input i + 1 for each step, one after the other.

    Raises as `named_program`.
    """
    return named_program(network, steps)[0]


def named_program(network: StepNetwork, steps: int) -> tuple[StepProgram, ProgramNames]:
    """As `step_program`, with its names: slot and constants have those of the inputs.

    Raises:
        UnsupportedError: numbers that fit no word.
        ProtocolError: no steps, or more than a program can have.
    """
    if steps < 1:
        raise ProtocolError("a program is for one step or more")
    writer = _ProgramWriter(network, steps)
    program = writer.program()
    return program, ProgramNames(network.inputs[:1], network.inputs[1:], tuple(writer.names), {})


def data_types(network: StepNetwork, steps: int) -> tuple[TensorType, ...]:
    """Types of the program's constants. Raises ProtocolError for more numbers than a tensor holds."""
    data = network.nodes[1 : len(network.inputs)]
    return tuple(TensorType(DType.F32, (steps * node.shape[0], *node.shape[1:])) for node in data)


def tensor_types(network: StepNetwork) -> bytes:
    """Types of the state's tensors, one after the other; the chain binds a vector to a state with them."""
    return TensorType(DType.F32, network.nodes[0].shape).encode()


class _ProgramWriter:
    def __init__(self, network: StepNetwork, steps: int) -> None:
        self.network = network
        self.nodes: list[ProgramNode] = []
        self.names: list[NodeName] = []
        self.place: dict[int, int] = {}
        self.bits: list[int] = []
        self.state = TensorType(DType.F32, network.nodes[0].shape)
        self.constants = data_types(network, steps)

    def program(self) -> StepProgram:
        for number, node in enumerate(self.network.nodes):
            self.bits.append(self._bits(number, node))
            self.place[number] = self._write(number, node)
            self._name(f"{node.kind}_{number}", _shown(self.network, number), str(node.kind))
        last = self.network.nodes[-1]
        element = _affine(last.shape, row_major(last.shape))
        producer = self._map(
            self.state,
            [self._read(self.place[len(self.network.nodes) - 1], element)],
            integer_words.to_float(self.network.scale),
        )
        self._name("next", "the vector after the step", "")
        slot = Slot(Component.PARAMETER, self.state, producer)
        program = StepProgram((slot,), self.constants, tuple(self.nodes))
        program.validate()
        return program

    def _name(self, name: str, source: str, operation: str) -> None:
        """Name the nodes that have no name yet."""
        self.names += [NodeName(name, source, operation)] * (len(self.nodes) - len(self.names))

    def _bits(self, number: int, node: NetworkNode) -> int:
        """Bits of the magnitude, for vectors of which there is a proof. Raises UnsupportedError if they don't fit."""
        of = [self.bits[operand] for operand in node.operands]
        left, right = self.network.shifts(number)
        if right > (2 * _WORD if node.kind in {NetworkOp.MUL, NetworkOp.MATMUL} else _WORD):
            raise UnsupportedError(f"node {number} ({node.kind}): {right} bits are more than its rounding may drop")
        match node.kind:
            case NetworkOp.INPUT:
                return WORD_BITS - 1
            case NetworkOp.CONSTANT:
                bits = max(abs(value) for value in node.values).bit_length()
            case NetworkOp.ADD | NetworkOp.SUB | NetworkOp.CONCAT:
                bits = max(bits + shift for bits, shift in zip(of, left, strict=True))
                bits += node.kind is not NetworkOp.CONCAT
            case NetworkOp.SUM:
                shape = self.network.nodes[node.operands[0]].shape
                bits = of[0] + math.ceil(math.log2(shape[node.axis]))
            case NetworkOp.MUL | NetworkOp.MATMUL:
                if max(of) > _FACTOR:
                    raise UnsupportedError(f"node {number}: a factor may have more than {_FACTOR} bits")
                if node.kind is NetworkOp.MATMUL and (terms := self.network.nodes[node.operands[0]].shape[1]) > _TERMS:
                    raise UnsupportedError(f"node {number}: it sums {terms} products, {_TERMS} at most")
                return WORD_BITS
            case NetworkOp.RECIPROCAL | NetworkOp.SQRT:
                return WORD_BITS
            case NetworkOp.GATE if node.operands[0] == node.operands[1]:
                # The exact circuit compares numbers of 24 bits.
                bits = min(of[0], WORD_BITS - 1)
            case _:
                bits = of[0]
        if bits > _WORD:
            raise UnsupportedError(f"node {number} ({node.kind}): numbers may have more than {_WORD} bits")
        return min(bits, WORD_BITS) if right else bits

    def _write(self, number: int, node: NetworkNode) -> int:
        network, shape = self.network, node.shape
        type_ = TensorType(DType.I32, shape)
        left, shift = network.shifts(number)
        strides: tuple[int, ...]
        match node.kind:
            case NetworkOp.INPUT:
                return self._map(type_, [self._given(number, node)], integer_words.from_float(network.scale))
            case NetworkOp.CONSTANT:
                return self._constant(type_, node)
            case NetworkOp.ADD | NetworkOp.SUB:
                operation = add if node.kind is NetworkOp.ADD else sub
                return self._map(type_, self._both(node), integer_words.combined(operation, left[0], left[1], shift))
            case NetworkOp.MUL:
                return self._map(type_, self._both(node), integer_words.product(shift))
            case NetworkOp.RECIPROCAL | NetworkOp.SQRT:
                divide = node.kind is NetworkOp.RECIPROCAL
                body = (integer_words.reciprocal if divide else integer_words.square_root)(network.scale)
                return self._map(
                    type_, [self._read(self.place[node.operands[0]], _affine(shape, row_major(shape)))], body
                )
            case NetworkOp.GATE:
                return self._rounded(type_, self._map(type_, self._both(node), integer_words.gated()), shift)
            case NetworkOp.SHIFT:
                return self.place[node.operands[0]]
            case NetworkOp.MATMUL:
                return self._matmul(type_, node, shift)
            case NetworkOp.SUM:
                return self._rounded(type_, self._sum(type_, node), shift)
            case NetworkOp.CONCAT:
                if any(left) or shift:
                    raise UnsupportedError("a concatenation is of numbers of one scale")
                return self._concat(type_, node)
            case NetworkOp.TRANSPOSE:
                strides, base = (1, shape[0]), 0
            case NetworkOp.SLICE:
                strides, base = row_major(network.nodes[node.operands[0]].shape), node.begin
            case _:
                strides, base = row_major(shape), 0
        read = self._read(self.place[node.operands[0]], _affine(shape, strides, base))
        return self._map(type_, [read], integer_words.rounded(shift) if shift else integer_words.copied())

    def _given(self, number: int, node: NetworkNode) -> Operand:
        """A word of the state, or of the data of the step."""
        strides = row_major(node.shape)
        if number == 0:
            return Operand(Source.STATE, 0, self.state, _affine(node.shape, strides))
        address = Affine(0, (node.size, *strides))
        return Operand(Source.CONSTANT, number - 1, self.constants[number - 1], address)

    def _constant(self, type_: TensorType, node: NetworkNode) -> int:
        """A constant tensor of one number: the fill word of a read whose bound never holds."""
        if len(set(node.values)) != 1:
            raise UnsupportedError("the program has no constant of several numbers: make it an input")
        nowhere = Bound(Affine(-1, (0,) * (1 + len(type_.shape))), 1)
        fill = node.values[0] & 0xFFFFFFFF
        read = Operand(Source.STATE, 0, self.state, _affine(type_.shape, (0,) * len(type_.shape)), fill, (nowhere,))
        return self._map(type_, [read], integer_words.copied())

    def _both(self, node: NetworkNode) -> list[Operand]:
        """Reads of both operands, broadcast to the node's shape."""
        reads = []
        for operand in node.operands:
            shape = self.network.nodes[operand].shape
            shape = (1,) * (len(node.shape) - len(shape)) + shape
            strides = tuple(0 if size == 1 else stride for size, stride in zip(shape, row_major(shape), strict=True))
            reads.append(self._read(self.place[operand], _affine(node.shape, strides)))
        return reads

    def _matmul(self, type_: TensorType, node: NetworkNode, shift: int) -> int:
        a, b = node.operands
        depth = self.network.nodes[a].shape[1]
        columns = self.network.nodes[b].shape[1]
        left = self._read(self.place[a], Affine(0, (0, depth, 0, 1)))
        right = self._read(self.place[b], Affine(0, (0, 0, 1, columns)))
        sums = [
            self._fold(type_, [left, right], integer_words.partial_sum(order), (depth,))
            for order in range(integer_words.SUMS)
        ]
        element = _affine(type_.shape, row_major(type_.shape))
        return self._map(type_, [self._read(place, element) for place in sums], integer_words.assembled(shift))

    def _sum(self, type_: TensorType, node: NetworkNode) -> int:
        shape = self.network.nodes[node.operands[0]].shape
        strides = row_major(shape)
        kept = tuple(0 if axis == node.axis else stride for axis, stride in enumerate(strides))
        read = self._read(self.place[node.operands[0]], Affine(0, (0, *kept, strides[node.axis])))
        return self._fold(type_, [read], integer_words.added(), (shape[node.axis],))

    def _concat(self, type_: TensorType, node: NetworkNode) -> int:
        reads, begin = [], 0
        for operand in node.operands:
            shape = self.network.nodes[operand].shape
            strides = row_major(shape)
            along = (0,) * (len(shape) - 1) + (1,)
            inside = Bound(_affine(type_.shape, along, -begin), shape[-1])
            place = self.place[operand]
            address = _affine(type_.shape, strides, -begin)
            reads.append(Operand(Source.NODE, place, self.nodes[place].type, address, 0, (inside,)))
            begin += shape[-1]
        return self._map(type_, reads, integer_words.joined(len(reads)))

    def _rounded(self, type_: TensorType, place: int, shift: int) -> int:
        if not shift:
            return place
        return self._map(
            type_, [self._read(place, _affine(type_.shape, row_major(type_.shape)))], integer_words.rounded(shift)
        )

    def _read(self, place: int, address: Affine) -> Operand:
        return Operand(Source.NODE, place, self.nodes[place].type, address)

    def _map(self, type_: TensorType, reads: Sequence[Operand], body: ScalarProgram) -> int:
        inputs = tuple(Input(InputKind.OPERAND, number) for number in range(len(reads)))
        self.nodes.append(ProgramNode(type_, tuple(reads), inputs, body))
        return len(self.nodes) - 1

    def _fold(self, type_: TensorType, reads: Sequence[Operand], body: ScalarProgram, fold: tuple[int, ...]) -> int:
        operands = (Input(InputKind.OPERAND, number) for number in range(len(reads)))
        inputs = (Input(InputKind.ACCUMULATOR), *operands)
        self.nodes.append(ProgramNode(type_, tuple(reads), inputs, body, fold))
        return len(self.nodes) - 1


def _shown(network: StepNetwork, number: int) -> str:
    """Where the nodes of a network's node come from, for people."""
    node = network.nodes[number]
    if node.kind is NetworkOp.INPUT:
        return f"network node {number}: the input {network.inputs[number]}"
    of = f" of {', '.join(map(str, node.operands))}" if node.operands else ""
    return f"network node {number}: {node.kind}{of}"


def _affine(shape: Sequence[int], strides: Sequence[int], base: int = 0) -> Affine:
    """An address over (step, element...), for all dimensions of the element."""
    return Affine(base, (0, *strides[: len(shape)]))
