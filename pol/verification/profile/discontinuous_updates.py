"""Updates that jump where a number changes a little: a sign, a rounding or a selection of what an optimizer averages.

Honest executions differ in their last bits. Where such a function decides between two values by them, the executions
part by a whole step, and stay apart: the average that decided moves on. Distances can't tell that from cheating.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenNode, Ref, TorchDType, references
from pol.graph.step_program import Component

COMPARISONS = frozenset(("gt", "ge", "lt", "le"))
SELECTIONS = ("topk", "sort", "argsort", "argmax", "argmin")
ROUNDED = "bfloat16"
ARITHMETIC = ("add", "sub", "rsub", "mul", "div", "neg", "reciprocal", "abs", "sqrt", "rsqrt", "pow", "exp", "log")
BLENDS = ("lerp", "addcmul", "addcdiv", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "where", "tanh")
VIEWS = ("view", "reshape", "_unsafe_view", "expand", "unsqueeze", "squeeze", "transpose", "permute", "t", "alias")
COPIES = ("_to_copy", "clone", "copy", "detach")
ROUNDINGS = ("sign", "sgn", "heaviside", "round", "floor", "ceil", "trunc")
KEEPS_PLACES = frozenset((*ARITHMETIC, *BLENDS, *VIEWS, *COPIES, *ROUNDINGS)) | COMPARISONS
"""Operations whose result at a place depends on their operands there: an update is a chain of them after the sums of
the backward pass."""


@dataclass(frozen=True)
class Jump:
    """An operation that jumps, on the way to the new value of a parameter."""

    node: AtenNode
    parameter: str


def require_continuous_update(graph: AtenGraph) -> None:
    """Check that no parameter's update jumps.

    Raises:
        UnsupportedError: one does; the message names the parameter and the line.
    """
    found = jump_of(graph)
    if found is None:
        return
    where = f" ({found.node.source})" if found.node.source else ""
    raise UnsupportedError(
        f"the update of {found.parameter} takes {name_of(found.node)} of an average or a gradient{where}: honest runs "
        "differ in last bits, and where that decides they part by a whole step for good. Distances can't tell that "
        "from cheating: use exact mode (margin 0)"
    )


def jump_of(graph: AtenGraph) -> Jump | None:
    """The first operation that jumps in an update; None if all updates are continuous."""
    averaged = _averaged(graph)
    for slot, end in zip(graph.slots, graph.next_state, strict=True):
        if slot.component is not Component.PARAMETER:
            continue
        for node in _tail(graph, end, averaged):
            return Jump(node, slot.name)
    return None


def name_of(node: AtenNode) -> str:
    """The operation's name without namespace and overload: "sign"."""
    return node.operation.split(".")[1]


def _averaged(graph: AtenGraph) -> Sequence[bool]:
    """By value: whether it follows from a number that the optimizer keeps."""
    found = [
        entry.component is Component.OPTIMIZER and entry.type.dtype in {"float32", ROUNDED} for entry in graph.inputs
    ]
    for node in graph.nodes:
        found.append(any(found[reference.value] for reference in references(node.all_arguments)))
    return found


def _tail(graph: AtenGraph, end: Ref, averaged: Sequence[bool]) -> list[AtenNode]:
    """The jumps of an update, in program order: of what the optimizer keeps, or in the chain behind the gradient."""
    inputs = len(graph.inputs)
    seen, chain = set[int](), {end.value}
    waiting = [end.value]
    jumps = set[int]()
    while waiting:
        value = waiting.pop()
        if value < inputs or value in seen:
            continue
        seen.add(value)
        node = graph.nodes[value - inputs]
        operands = {reference.value for reference in references(node.all_arguments)}
        is_chained = value in chain and name_of(node) in KEEPS_PLACES
        if is_chained:
            chain |= operands
        if not averaged[value] and not is_chained:
            continue
        if _jumps(graph, node) and (averaged[value] or _has_gradient(graph, operands)):
            jumps.add(value)
        waiting += operands
    return [graph.nodes[value - inputs] for value in sorted(jumps)]


def _jumps(graph: AtenGraph, node: AtenNode) -> bool:
    name = name_of(node)
    if name == "_to_copy":
        # A state that is kept in low precision is rounded everywhere: its profile shows how far that parts.
        source = next(references(node.all_arguments), None)
        rounds = any(isinstance(value, TorchDType) and value.name == ROUNDED for value in node.all_arguments)
        kept = {entry.type.dtype for entry in graph.slots if entry.component is Component.PARAMETER}
        return rounds and source is not None and graph.type_of(source).dtype == "float32" and ROUNDED not in kept
    return name in COMPARISONS or name in ROUNDINGS or name in SELECTIONS


def _has_gradient(graph: AtenGraph, operands: set[int]) -> bool:
    """Whether operands follow from more than inputs by operations in place: from a sum of the backward pass."""
    inputs, waiting, seen = len(graph.inputs), list(operands), set[int]()
    while waiting:
        value = waiting.pop()
        if value < inputs or value in seen:
            continue
        seen.add(value)
        node = graph.nodes[value - inputs]
        if name_of(node) not in KEEPS_PLACES:
            return True
        waiting += [reference.value for reference in references(node.all_arguments)]
    return False
