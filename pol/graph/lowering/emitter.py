"""Writes nodes: from reads over the coordinates of a node and a formula to a descriptor with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pol.arithmetic.registers import Float, Register, Word
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.aten_graph import AtenNode
from pol.graph.lowering.values import Fill, StepNumber, Value, View, reshape, whole_view
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.node_names import NodeName
from pol.graph.tensor_type import DType, TensorType


@dataclass(frozen=True)
class NodeRead:
    """A view read with bounds over the node's element and fold coordinates, or moved by an earlier argument's words.

    `gather` is (position of the index among the arguments, stride, limit).
    """

    view: View
    fill: int = 0
    bounds: tuple[Bound, ...] = ()
    gather: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Coordinate:
    """The position along a dimension of (element..., fold...) as an argument."""

    axis: int


Argument: TypeAlias = "View | Fill | StepNumber | NodeRead | Coordinate"
Formula: TypeAlias = Callable[..., Register]
"""From one register for each argument, a Float or a Word as its type says, to the result; of a fold the accumulator is
the first register."""


class Emitter:
    """Collects the nodes of a step program, each one once; `begin` says for which ATen operation they are."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: list[NodeName] = []
        self._origin = AtenNode("", (), (), (), "", "")
        self._known: dict[Node, int] = {}

    def begin(self, origin: AtenNode) -> None:
        """The nodes that follow come from this operation."""
        self._origin = origin

    def map(
        self, shape: tuple[int, ...], dtype: DType, arguments: Sequence[Argument], formula: Formula, part: str = ""
    ) -> View:
        """A map; every view among the arguments has the node's shape."""
        return self.fold(TensorType(dtype, shape), (), 0, arguments, formula, part)

    def stored(self, value: Value, part: str = "copy") -> View:
        """The value as the whole output of a node: itself if it already is one, else a node that moves words."""
        if isinstance(value, View) and value.source is Source.NODE and value.is_whole:
            return value
        return self.map(value.shape, value.dtype, [value], same, part)

    def view(self, value: Value) -> View:
        """The value as words in memory: itself if it is a view."""
        return value if isinstance(value, View) else self.stored(value)

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The value under another shape; words are moved only where strides cannot say it."""
        seen = reshape(value, shape)
        if seen is None:
            seen = reshape(self.stored(value), shape)
        if seen is None:
            raise AssertionError("a stored tensor can have any shape")
        return seen

    def fold(
        self,
        type_: TensorType,
        terms: tuple[int, ...],
        init: int,
        arguments: Sequence[Argument],
        formula: Formula,
        part: str = "",
    ) -> View:
        """A fold, or a map without `terms`; every view among the arguments has the node's shape followed by `terms`."""
        shape = (*type_.shape, *terms)
        operands: list[Operand] = []
        inputs: list[Input] = [Input(InputKind.ACCUMULATOR)] if terms else []
        # Per argument: its operand (for gathers), its register or the word that stands for it.
        registers: list[int | None] = []
        numbers: list[int] = []
        for argument in arguments:
            entry = self._input(argument, shape, operands, numbers)
            numbers.append(entry.index if entry is not None and entry.kind is InputKind.OPERAND else -1)
            if entry is None:
                registers.append(None)
                continue
            if entry not in inputs:
                inputs.append(entry)
            registers.append(inputs.index(entry))
        builder = Builder(len(inputs))
        handles = [
            builder.const(argument.word) if isinstance(argument, Fill) else builder.input(_known(place))
            for argument, place in zip(arguments, registers, strict=True)
        ]
        given = [_kind(argument)(builder, handle) for argument, handle in zip(arguments, handles, strict=True)]
        kind = Float if type_.dtype is DType.F32 else Word
        result = formula(kind(builder, 0), *given) if terms else formula(*given)
        if type(result) is not kind:
            raise TypeError(f"a formula for {type_.dtype.name} gives a {type(result).__name__}")
        body = builder.build(result.handle)
        node = _without_unused(Node(type_, tuple(operands), tuple(inputs), body, terms, init))
        if node in self._known:
            return whole_view(Source.NODE, self._known[node], type_)
        self._known[node] = len(self.nodes)
        self.nodes.append(node)
        name = f"{self._origin.name}.{part}" if part else self._origin.name
        self.names.append(NodeName(name, self._origin.source, self._origin.operation))
        return whole_view(Source.NODE, len(self.nodes) - 1, type_)

    @staticmethod
    def _input(argument: Argument, shape: tuple[int, ...], operands: list[Operand], numbers: list[int]) -> Input | None:
        if isinstance(argument, Fill):
            return None
        if isinstance(argument, StepNumber):
            return Input(InputKind.COORDINATE, 0)
        if isinstance(argument, Coordinate):
            return Input(InputKind.COORDINATE, 1 + argument.axis)
        read = NodeRead(argument) if isinstance(argument, View) else argument
        view = read.view
        if view.shape != shape:
            raise ProtocolError(f"a tensor of shape {view.shape} is read over {shape}")
        gather = None
        if read.gather is not None:
            position, stride, limit = read.gather
            gather = Gather(numbers[position], stride, limit)
        # A dimension of size 1 has one coordinate, 0; its stride says nothing, and zero is the canonical nothing.
        strides = (0 if size == 1 else stride for size, stride in zip(view.shape, view.strides, strict=True))
        address = Affine(view.base, (view.step_stride, *strides))
        operand = Operand(view.source, view.index, view.type, address, read.fill, read.bounds, gather)
        if operand not in operands:
            operands.append(operand)
        return Input(InputKind.OPERAND, operands.index(operand))


def same(word: Register) -> Register:
    """The formula of a map that moves words."""
    return word


def _kind(argument: Argument) -> type[Register]:
    if isinstance(argument, Coordinate):
        return Word
    view = argument.view if isinstance(argument, NodeRead) else argument
    return Float if view.dtype is DType.F32 else Word


def _known(register: int | None) -> int:
    if register is None:
        raise AssertionError("only a repeated word has no register")
    return register


def _without_unused(node: Node) -> Node:
    """The node without input registers that its scalar program never reads."""
    read = {register for step in node.body.instructions for register in step.operands}
    unused = [number for number in range(len(node.inputs)) if number not in read]
    if not unused:
        return node
    kept = [number for number in range(len(node.inputs)) if number in read]
    builder = Builder(len(kept))
    handles: list[int] = [kept.index(number) if number in read else -1 for number in range(len(node.inputs))]
    handles += [builder.const(word) for word in node.body.constants]
    for step in node.body.instructions:
        handles.append(builder.emit(step.op, *(handles[register] for register in step.operands)))
    return replace(node, inputs=tuple(node.inputs[number] for number in kept), body=builder.build(handles[-1]))
