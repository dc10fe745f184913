"""Updates that jump where a number changes a little: a sign, a rounding or a selection (docs/spec/profile.md, "Jumps").

Honest executions differ in their last bits. Where such a function decides between two values by them, the executions
part by a whole step, and stay apart: the average that decided moves on. Distances can't tell that from cheating.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pol.errors import UnsupportedError
from pol.graph.aten_graph import NARROW, WORD_TYPES, AtenGraph, AtenNode, Ref, TorchDType, references
from pol.graph.step_program import Component

COMPARISONS = frozenset(("gt", "ge", "lt", "le"))
SELECTIONS = ("topk", "kthvalue", "sort", "argsort", "argmax", "argmin")
MOVES = frozenset(("gather", "scatter", "scatter_add", "scatter_reduce", "index", "index_select", "index_put"))
"""Operations that move numbers to places that others say."""
ROUNDED = "bfloat16"
FLOATS = frozenset(("float32", ROUNDED))
ARITHMETIC = ("add", "sub", "rsub", "mul", "div", "neg", "reciprocal", "abs", "sqrt", "rsqrt", "pow", "exp", "log")
BLENDS = ("lerp", "addcmul", "addcdiv", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "where", "tanh")
VIEWS = ("view", "reshape", "_unsafe_view", "expand", "unsqueeze", "squeeze", "transpose", "permute", "t", "alias")
PARTS = ("slice", "select")
COPIES = ("_to_copy", "clone", "copy", "detach")
ROUNDINGS = ("sign", "sgn", "heaviside", "round", "floor", "ceil", "trunc")
KEEPS_PLACES = frozenset((*ARITHMETIC, *BLENDS, *VIEWS, *COPIES, *ROUNDINGS)) | COMPARISONS
"""Operations whose result at a place depends on their operands there: an update is a chain of them after the sums of
the backward pass."""
QUANTIZING = ("round", "_int_mm")
"""With conversions to bytes, operations that make a few levels of a number, in the network as well."""


@dataclass(frozen=True)
class Jump:
    """An operation that jumps, on the way to the new value of a slot."""

    node: AtenNode
    slot: str


def require_continuous_update(graph: AtenGraph) -> None:
    """Check that no update jumps, and that the network doesn't quantize.

    Raises:
        UnsupportedError: one does; the message names the operation, its node, the user's line and the slot.
    """
    found = jump_of(graph)
    if found is None:
        return
    where = f"node {found.node.name}" + (f", {found.node.source}" if found.node.source else "")
    raise UnsupportedError(
        f"{name_of(found.node)} ({where}) decides how {found.slot} is updated: honest runs differ in last bits, and "
        "where they flip it they part by a whole step for good. Distances can't tell that from cheating: use exact "
        "mode (margin 0)"
    )


def jump_of(graph: AtenGraph) -> Jump | None:
    """The first operation that jumps on the way to a slot; None if all updates are continuous."""
    varying = _varying(graph)
    averages = {
        number
        for number, entry in enumerate(graph.inputs)
        if varying[number] and entry.component is Component.OPTIMIZER and entry.type.dtype in FLOATS
    }
    averaged = _following(graph, averages)
    for slot, end in zip(graph.slots, graph.next_state, strict=True):
        if not varying[end.value]:
            continue
        for node in _tail(graph, end, averaged) or _quantizing(graph, end, varying):
            return Jump(node, slot.name)
    return None


def name_of(node: AtenNode) -> str:
    """The operation's name without namespace and overload: "sign"."""
    return node.operation.split(".")[1]


def _varying(graph: AtenGraph) -> Sequence[bool]:
    """By value: whether it follows from what is trained. Step counters, schedules, data and draws don't."""
    trained = {number for number, entry in enumerate(graph.slots) if entry.component is Component.PARAMETER}
    while True:
        found = _following(graph, trained)
        more = {number for number, end in enumerate(graph.next_state) if found[end.value]}
        if more <= trained:
            return found
        trained |= more


def _following(graph: AtenGraph, inputs: set[int]) -> Sequence[bool]:
    """By value: whether it follows from one of these inputs."""
    found = [number in inputs for number in range(len(graph.inputs))]
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
        elif value in chain and name_of(node) in MOVES:
            jumps |= _choices_of_itself(graph, value)
        if not averaged[value] and not is_chained:
            continue
        if _jumps(graph, node) and (averaged[value] or _has_gradient(graph, operands)):
            jumps.add(value)
        waiting += operands
    return [graph.nodes[value - inputs] for value in sorted(jumps)]


def _choices_of_itself(graph: AtenGraph, moved: int) -> set[int]:
    """Selections that say where numbers are moved, and that select among the same numbers: the top k of a gradient.

    A network's choices, such as those of a router, select among other numbers than the gradients that they move.
    """
    inputs = len(graph.inputs)
    through = KEEPS_PLACES | MOVES
    own = _in_place(graph, [moved], through)
    found = set[int]()
    for value in _in_place(graph, [moved], {*through, *PARTS}):
        node = graph.nodes[value - inputs]
        chosen = {reference.value for reference in references(node.all_arguments)}
        if name_of(node) in SELECTIONS and own & ({value} | _in_place(graph, chosen, through)):
            found.add(value)
    return found


def _in_place(graph: AtenGraph, values: Collection[int], through: Collection[str]) -> set[int]:
    """The values that these follow from by operations of ``through``, with the first of others; no inputs."""
    inputs, waiting, seen = len(graph.inputs), list(values), set[int]()
    while waiting:
        value = waiting.pop()
        if value < inputs or value in seen:
            continue
        seen.add(value)
        node = graph.nodes[value - inputs]
        if name_of(node) in through:
            waiting += [reference.value for reference in references(node.all_arguments)]
    return seen


def _quantizing(graph: AtenGraph, end: Ref, varying: Sequence[bool]) -> list[AtenNode]:
    """What rounds trained numbers to a few levels before the end, anywhere in the step."""
    inputs, waiting, seen = len(graph.inputs), [end.value], set[int]()
    while waiting:
        value = waiting.pop()
        if value >= inputs and varying[value] and value not in seen:
            seen.add(value)
            waiting += [reference.value for reference in references(graph.nodes[value - inputs].all_arguments)]
    nodes = [graph.nodes[value - inputs] for value in sorted(seen)]
    return [
        node
        for node in nodes
        if any(varying[reference.value] for reference in references(node.all_arguments))
        and (name_of(node) in QUANTIZING or _converts(graph, node, NARROW.keys()))
    ]


def _jumps(graph: AtenGraph, node: AtenNode) -> bool:
    name = name_of(node)
    if name == "_to_copy":
        # A state that is kept in low precision is rounded everywhere: its profile shows how far that parts.
        kept = {entry.type.dtype for entry in graph.slots if entry.component is Component.PARAMETER}
        to = {*WORD_TYPES} - FLOATS - {"bool"} | {ROUNDED} - kept
        return _converts(graph, node, to)
    return name in COMPARISONS or name in ROUNDINGS or name in SELECTIONS


def _converts(graph: AtenGraph, node: AtenNode, to: Collection[str]) -> bool:
    """Whether it converts a float32 to one of these dtypes."""
    source = next(references(node.all_arguments), None)
    converted = any(isinstance(value, TorchDType) and value.name in to for value in node.all_arguments)
    is_float32 = source is not None and graph.type_of(source).dtype == "float32"
    return name_of(node) == "_to_copy" and converted and is_float32


def _has_gradient(graph: AtenGraph, operands: set[int]) -> bool:
    """Whether operands follow from more than inputs by operations in place: from a sum of the backward pass."""
    found = _in_place(graph, operands, KEEPS_PLACES)
    return any(name_of(graph.nodes[value - len(graph.inputs)]) not in KEEPS_PLACES for value in found)
