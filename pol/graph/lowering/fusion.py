"""Joins maps: a map that only one other map reads, element by element, becomes part of that map's scalar program.

The primitives and their order stay, so no bit changes. What disappears is a tensor of the trace: its bytes, its hashing
and its way through memory. A dispute opens one longer scalar program instead of two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.values import restride
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.node_names import NodeName
from pol.graph.tensor_type import row_major

MOST_INSTRUCTIONS = 96
"""Longest scalar program that joining makes: a dispute opens all of its results in one move."""
MOST_OPERANDS = 8
"""Most operands that joining makes: a dispute carries the node's descriptor."""
MOST_SOURCES = 4
"""A joined node names so many lines of the user's code at most."""


def fuse(
    nodes: Sequence[Node], names: Sequence[NodeName], kept: Collection[int]
) -> tuple[list[Node], list[NodeName], set[int]]:
    """Nodes and names at the same numbers as before, maps joined, and the numbers that nothing needs any more.

    `kept` are nodes whose output is needed as such. Deterministic: earlier nodes are joined first.
    """
    result, named = list(nodes), list(names)
    readers: list[set[int]] = [set() for _ in nodes]
    for number, node in enumerate(nodes):
        for source in _sources(node):
            readers[source].add(number)
    gone: set[int] = set()
    for number, node in enumerate(result):
        if number in kept or len(readers[number]) != 1:
            continue
        (reader,) = readers[number]
        joined = _joined(node, number, result[reader])
        if joined is None:
            continue
        for source in _sources(node):
            readers[source] = (readers[source] - {number}) | {reader}
        result[reader], named[reader] = joined, _named(named[number], named[reader])
        gone.add(number)
    return result, named, gone


def _sources(node: Node) -> set[int]:
    return {operand.index for operand in node.operands if operand.source is Source.NODE}


def _joined(first: Node, number: int, second: Node) -> Node | None:
    """`second` with the computation of `first` in it, or None if that is not possible."""
    length = len(first.body.instructions) + len(second.body.instructions)
    if first.fold or second.fold or length > MOST_INSTRUCTIONS:
        return None
    moved = _reshaped(first, second.type.shape)
    inside = [(operand.source, operand.index) == (Source.NODE, number) for operand in second.operands]
    if moved is None or not all(
        _is_element(operand, second) if own else operand.gather is None or not inside[operand.gather.operand]
        for operand, own in zip(second.operands, inside, strict=True)
    ):
        return None
    operands: list[Operand] = []
    before = _placed(operands, moved.operands, [False] * len(moved.operands))
    after = _placed(operands, second.operands, inside)
    if len(operands) > MOST_OPERANDS:
        return None
    inputs: list[Input] = []
    given = [_register(inputs, entry, before) for entry in moved.inputs]
    own = [_register(inputs, entry, after) for entry in second.inputs]
    builder = Builder(len(inputs))
    value = builder.call(moved.body, *(register for register in given if register is not None))
    body = builder.build(builder.call(second.body, *(value if register is None else register for register in own)))
    return Node(second.type, tuple(operands), tuple(inputs), body)


def _reshaped(node: Node, shape: tuple[int, ...]) -> Node | None:
    """The map over another shape with the same elements in the same order; None where its reads cannot say it."""
    if node.type.shape == shape:
        return node
    if node.type.numel != _elements(shape):
        return None

    def moved(affine: Affine) -> Affine | None:
        strides = restride(node.type.shape, affine.strides[1:], shape)
        return None if strides is None else Affine(affine.base, (affine.strides[0], *strides))

    operands = []
    for operand in node.operands:
        address, limits = moved(operand.address), [moved(bound.affine) for bound in operand.bounds]
        if address is None or any(limit is None for limit in limits):
            return None
        bounds = tuple(
            replace(bound, affine=limit)
            for bound, limit in zip(operand.bounds, limits, strict=True)
            if limit is not None
        )
        operands.append(replace(operand, address=address, bounds=bounds))
    inputs = []
    for entry in node.inputs:
        if entry.kind is InputKind.COORDINATE and entry.index:
            unit = [int(axis == entry.index - 1) for axis in range(len(node.type.shape))]
            strides = restride(node.type.shape, unit, shape)
            if strides is None or sorted(strides)[-1:] != [1] or sum(strides) != 1:
                return None
            entry = Input(InputKind.COORDINATE, 1 + strides.index(1))  # noqa: PLW2901  # the entry over the new shape
        inputs.append(entry)
    return Node(replace(node.type, shape=shape), tuple(operands), tuple(inputs), node.body)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _is_element(operand: Operand, node: Node) -> bool:
    """Whether a map reads, for each of its elements, the element of the same number."""
    shape = node.type.shape
    strides = tuple(0 if size == 1 else stride for size, stride in zip(shape, operand.address.strides[1:], strict=True))
    own = tuple(0 if size == 1 else stride for size, stride in zip(shape, row_major(shape), strict=True))
    same = strides == own and operand.address.base == 0 and operand.address.strides[0] == 0
    return same and not operand.bounds and operand.gather is None and operand.type.numel == node.type.numel


def _placed(operands: list[Operand], more: Sequence[Operand], inside: Sequence[bool]) -> list[int | None]:
    """Add operands to a list that holds each only once; returns where they are, None for those that are `inside`."""
    places: list[int | None] = []
    for operand, skipped in zip(more, inside, strict=True):
        if skipped:
            places.append(None)
            continue
        if operand.gather is not None:
            index = places[operand.gather.operand]
            if index is None:
                raise AssertionError("an address moved by a joined value was refused before")
            operand = replace(operand, gather=replace(operand.gather, operand=index))  # noqa: PLW2901  # same read, moved
        if operand not in operands:
            operands.append(operand)
        places.append(operands.index(operand))
    return places


def _register(inputs: list[Input], entry: Input, places: Sequence[int | None]) -> int | None:
    """The register of an input in the joined program, or None for the value that the first map computes."""
    if entry.kind is InputKind.OPERAND:
        place = places[entry.index]
        if place is None:
            return None
        entry = Input(InputKind.OPERAND, place)
    if entry not in inputs:
        inputs.append(entry)
    return inputs.index(entry)


def _named(first: NodeName, second: NodeName) -> NodeName:
    """The second node's name; the lines and operations of both."""
    sources = list(dict.fromkeys([*first.source.split("; "), *second.source.split("; ")]))
    shown = sources if len(sources) <= MOST_SOURCES else [*sources[: MOST_SOURCES - 1], sources[-1]]
    operations = dict.fromkeys([*first.operation.split(" "), *second.operation.split(" ")])
    return NodeName(second.name, "; ".join(filter(None, shown)), " ".join(operations))
