"""From an ATen graph to a step program: one rule per operation, no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pol.arithmetic.primitives import Op, apply
from pol.arithmetic.registers import WideIntegerError, rounded_to_bfloat16
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.aten_graph import NARROW, AtenGraph, AtenNode, AtenType, InputRole, Ref, references
from pol.graph.lowering.advice import undefined
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Emitter
from pol.graph.lowering.fusion import fuse
from pol.graph.lowering.rule_table import RULES
from pol.graph.lowering.values import Fill, StepNumber, Value, whole_view
from pol.graph.node import Node, Operand, Source
from pol.graph.node_names import ProgramNames
from pol.graph.refusals import Report, refuse
from pol.graph.step_program import Component, Slot, StepProgram

BFLOAT16 = "bfloat16"
_SIGNS = frozenset({"aten.neg.default", "aten.abs.default"})
"""Operations that only change signs: the least integer has no negative."""


def rounded(call: Call, value: Value, type_: AtenType) -> Value:
    """The result of an operation, as its type needs it."""
    if type_.dtype in NARROW:
        return _wrapped(call, value, type_.dtype)
    if type_.dtype != BFLOAT16 or _is_exact(call):
        return value
    if isinstance(value, Fill):
        return replace(value, word=int(apply(Op.RBF16, np.array(value.word, np.uint32))))
    return call.emitter.map(value.shape, value.dtype, [value], rounded_to_bfloat16, BFLOAT16)


def _wrapped(call: Call, value: Value, dtype: str) -> Value:
    """The integers modulo the count of numbers that the type has."""
    least, greatest = NARROW[dtype]
    if isinstance(value, Fill):
        return replace(value, word=((value.word - least) % (greatest - least + 1) + least) % 2**32)
    operands = {call.types[reference].dtype for reference in references(call.node.arguments)}
    if RULES[call.node.operation].is_exact and operands <= {dtype, "bool"} and call.node.operation not in _SIGNS:
        return value
    return call.emitter.map(
        value.shape, value.dtype, [value], lambda x: ((x - least) & (greatest - least)) + least, dtype
    )


def _is_exact(call: Call) -> bool:
    operands = [call.types[reference].dtype for reference in references(call.node.arguments)]
    # Indices are integers; an operation without any operand makes its numbers itself.
    return RULES[call.node.operation].is_exact and BFLOAT16 in operands and "float32" not in operands


Observed: TypeAlias = Sequence[tuple[str, Ref]]


def lower(graph: AtenGraph) -> tuple[StepProgram, ProgramNames]:
    """The step program that computes the graph, and the names of its parts.

    Deterministic: equal graphs give equal bytes. Raises UnsupportedError, with the user's line, for an operation
    without a rule, and ProtocolError for a graph that contradicts itself.
    """
    return Lowering(graph).program(graph.next_state, graph.observed)


class Lowering:
    """The operations of a graph, lowered once for several programs; raises as `lower`."""

    def __init__(self, graph: AtenGraph) -> None:
        self.graph = graph
        self._emitter = Emitter()
        self._values = _lower_nodes(graph, self._emitter, refuse)

    def program(self, next_state: Sequence[Ref], observed: Observed) -> tuple[StepProgram, ProgramNames]:
        """The program that computes these values of the graph, and the names of its parts."""
        graph, emitter = self.graph, self._emitter
        producers, shown = [], {}
        for entry, reference in zip(graph.slots, next_state, strict=True):
            emitter.begin(AtenNode("copy", (), (), (), f"update.{entry.name}", "the state keeps this value"))
            producers.append(emitter.stored(self._values[reference], "").index)
        for name, reference in observed:
            emitter.begin(AtenNode("copy", (), (), (), f"observed.{name}", ""))
            shown[name] = emitter.stored(self._values[reference], "").index
        return _assemble(graph, emitter, producers, shown)


def report_refusals(graph: AtenGraph, report: Report) -> None:
    """Report every operation that its rule refuses; results of those without a rule may be anything."""
    _lower_nodes(graph, Emitter(), report, {node.operation for node in graph.nodes} - set(RULES))


def _lower_nodes(graph: AtenGraph, emitter: Emitter, report: Report, unknown: Collection[str] = ()) -> dict[Ref, Value]:
    """The values of a graph; where an operation is refused and the report returns, words of its types."""
    values = _inputs(graph)
    types = {reference: graph.type_of(reference) for reference in values}
    for position, node in enumerate(graph.nodes):
        call = Call(emitter, node, values, types)
        try:
            results = _unknown(graph, position) if node.operation in unknown else _lower_node(call)
        except WideIntegerError as error:
            report(call.unsupported(str(error)))
            results = _unknown(graph, position)
        except UnsupportedError as error:
            report(error)
            results = _unknown(graph, position)
        for output, (result, type_) in enumerate(zip(results, node.outputs, strict=True)):
            _check(node, result, type_)
            reference = Ref(len(graph.inputs) + position, output)
            values[reference] = result if node.operation in unknown else rounded(call, result, type_)
            types[reference] = type_
    return values


def _unknown(graph: AtenGraph, position: int) -> tuple[Value, ...]:
    """What stands for the results of a node that is not lowered: constants of their types."""
    first = len(graph.constants) + position
    return tuple(whole_view(Source.CONSTANT, first, type_.words) for type_ in graph.nodes[position].outputs)


def _inputs(graph: AtenGraph) -> dict[Ref, Value]:
    values: dict[Ref, Value] = {}
    slots = len(graph.slots)
    for number, entry in enumerate(graph.inputs):
        if entry.role is InputRole.STEP:
            values[Ref(number)] = StepNumber(())
        elif entry.role is InputRole.STATE:
            values[Ref(number)] = whole_view(Source.STATE, number, entry.type.words)
        else:
            values[Ref(number)] = whole_view(Source.CONSTANT, number - slots, entry.type.words)
    return values


def _lower_node(call: Call) -> tuple[Value, ...]:
    node = call.node
    rule = RULES.get(node.operation)
    if rule is None:
        raise undefined(node.source or node.name, node.operation)
    if not node.outputs:
        raise ProtocolError(f"{node.name}: an operation has an output")
    call.emitter.begin(node)
    try:
        result = rule.lower(call)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        raise ProtocolError(f"{node.name}: {node.operation} has impossible arguments: {error}") from error
    results = _wanted(node, result if isinstance(result, tuple) else (result,))
    if len(results) != len(node.outputs):
        raise ProtocolError(f"{node.name}: {node.operation} has {len(results)} outputs, not {len(node.outputs)}")
    return results


def _wanted(node: AtenNode, results: tuple[Value, ...]) -> tuple[Value, ...]:
    """The results that an output mask (a last argument of booleans) asks for, as the graph states them."""
    mask = node.arguments[-1] if node.arguments else None
    if not isinstance(mask, tuple) or len(mask) != len(results) or not all(isinstance(flag, bool) for flag in mask):
        return results
    return tuple(result for result, flag in zip(results, mask, strict=True) if flag)


def _check(node: AtenNode, result: Value, type_: AtenType) -> None:
    if (result.dtype, result.shape) != (type_.words.dtype, type_.shape):
        raise ProtocolError(
            f"{node.name}: {node.operation} gives {result.dtype.name} {result.shape}, the graph says {type_}"
        )


def _assemble(
    graph: AtenGraph, emitter: Emitter, producers: list[int], observed: dict[str, int]
) -> tuple[StepProgram, ProgramNames]:
    """The program without nodes that nothing needs, its maps joined."""
    outputs = {*producers, *observed.values()}
    used = sorted(_ancestors(emitter.nodes, outputs))
    numbers = {old: new for new, old in enumerate(used)}
    nodes, labels, gone = fuse(
        [renumbered(emitter.nodes[old], numbers) for old in used],
        [emitter.names[old] for old in used],
        {numbers[old] for old in outputs},
    )
    kept = [number for number in range(len(nodes)) if number not in gone]
    moved = {old: new for new, old in enumerate(kept)}
    final = {old: moved[number] for old, number in numbers.items() if number in moved}
    slots = []
    for entry, producer in zip(graph.slots, producers, strict=True):
        slots.append(Slot(_component(entry.component), entry.type.words, final[producer], entry.scale))
    program = StepProgram(
        tuple(slots),
        tuple(entry.type.words for entry in graph.constants),
        tuple(renumbered(nodes[old], moved) for old in kept),
    )
    program.validate()
    names = ProgramNames(
        tuple(entry.name for entry in graph.slots),
        tuple(entry.name for entry in graph.constants),
        tuple(labels[old] for old in kept),
        {name: final[number] for name, number in observed.items()},
    )
    return program, names


def _ancestors(nodes: Sequence[Node], outputs: Collection[int]) -> set[int]:
    needed = set(outputs)
    for number in range(len(nodes) - 1, -1, -1):
        if number in needed:
            needed.update(operand.index for operand in nodes[number].operands if operand.source is Source.NODE)
    return needed


def renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    """The node with other numbers for the nodes that it reads."""

    def moved(operand: Operand) -> Operand:
        return replace(operand, index=numbers[operand.index]) if operand.source is Source.NODE else operand

    return replace(node, operands=tuple(moved(operand) for operand in node.operands))


def _component(component: Component | None) -> Component:
    if component is None:
        raise ProtocolError("a state slot has a component")
    return component
