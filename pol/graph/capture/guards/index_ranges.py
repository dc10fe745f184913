"""Integers that are addresses: data are checked before a task is published, operands before torch sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pol.errors import ProtocolError, UnsupportedError
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode, InputRole, Ref
from pol.graph.capture.tracing.aten_recorder import VIEWS
from pol.graph.capture.tracing.step_inputs import DATA, ORDER
from pol.graph.refusals import Report, refuse


@dataclass(frozen=True)
class IndexOperand:
    """An operand whose integers ``least .. size - 1`` choose from places; ``ignored`` stands for none."""

    ref: Ref
    size: int
    places: str
    ignored: int | None = None
    least: int = 0

    def wrong(self, indices: Tensor) -> int | None:
        """An index that does not exist, or None; also of floats, which torch refuses."""
        if not indices.numel() or indices.is_floating_point():
            return None
        low, high = (int(bound) for bound in indices.aminmax())
        if low >= self.least and high < self.size:
            return None  # as in almost all batches, at a third of the time
        wrong = indices[((indices < self.least) | (indices >= self.size)) & (indices != self.ignored)]
        return int(wrong[0]) if wrong.numel() else None


def index_operands(node: AtenNode, shape_of: Callable[[Ref], Sequence[int]]) -> Iterator[IndexOperand]:
    """The operands of a node whose integers are addresses.

    Raises:
        ProtocolError: such an operand is not where the operation reads it.
    """
    arguments = node.arguments

    def shape(place: int) -> Sequence[int]:
        return shape_of(_ref(arguments[place]))

    def classes(place: int, ignored: int) -> IndexOperand:
        count = shape(place)[:2][-1]
        return IndexOperand(_ref(arguments[place + 1]), count, "classes", _integer(arguments[ignored]))

    try:
        match node.operation.split(".")[1]:
            case "embedding":
                yield IndexOperand(_ref(arguments[1]), shape(0)[0], "rows in the embedding")
            case "embedding_dense_backward":
                yield IndexOperand(_ref(arguments[1]), _integer(arguments[2]), "rows in the embedding")
            case "gather" | "index_select" | "index_add" | "index_copy" | "scatter" | "scatter_add" | "scatter_reduce":
                size = (shape(0) or (1,))[_integer(arguments[1])]
                yield IndexOperand(_ref(arguments[2]), size, "places to choose from")
            case "nll_loss_forward" | "nll_loss2d_forward":
                yield classes(0, 4)
            case "nll_loss_backward" | "nll_loss2d_backward":
                yield classes(1, 5)
            case "max_pool2d_with_indices_backward":
                yield IndexOperand(_ref(arguments[7]), math.prod(shape(1)[-2:]), "places in a channel")
            case "max_pool3d_with_indices_backward":
                yield IndexOperand(_ref(arguments[7]), math.prod(shape(1)[-3:]), "places in a channel")
            case "index" | "index_put":
                given = arguments[1] if isinstance(arguments[1], tuple) else (arguments[1],)
                for size, item in zip(shape(0), given, strict=False):
                    if item is not None:
                        yield IndexOperand(_ref(item), size, "places to choose from", least=-size)
            case "_grouped_mm" if len(arguments) > 2 and arguments[2] is not None:
                left, right = shape(0), shape(1)
                size = right[-1] if len(left) > len(right) else left[len(left) == len(right)]
                yield IndexOperand(_ref(arguments[2]), size + 1, "ends of groups")
    except (IndexError, TypeError) as error:
        raise ProtocolError(f"{node.name}: {node.operation} has impossible arguments: {error}") from error


def _ref(argument: Argument) -> Ref:
    if not isinstance(argument, Ref):
        raise TypeError(f"{argument!r} is no tensor")
    return argument


def _integer(argument: Argument) -> int:
    if type(argument) is not int:
        raise TypeError(f"{argument!r} is no integer")
    return argument


@dataclass(frozen=True)
class Lookup:
    """A constant whose integers choose places, and the line that reads it."""

    constant: str
    source: str
    operand: IndexOperand

    def require(self, indices: Tensor, report: Report = refuse) -> None:
        """Raises UnsupportedError for an index that does not exist; floats are cut off, as the step does."""
        own = self.operand
        wrong = own.wrong(indices.long() if indices.is_floating_point() else indices)
        if wrong is not None:
            report(
                UnsupportedError(
                    f"{self.source} -- {self.constant} holds {wrong}, but there are {own.size} {own.places}: "
                    f"{own.least} .. {own.size - 1}. Renumber it, or change the size of the layer"
                )
            )


def require_indices_in_range(graph: AtenGraph, constants: Mapping[str, Tensor], report: Report = refuse) -> None:
    """Raises UnsupportedError for an index in the data that the step looks up and that does not exist.

    `constants` are the constants of the graph by name. Only rows that the order names count. Indices that the step
    computes are not checked: an executor reads NaN where they are out of range.
    """
    for lookup in lookups_of(graph):
        used = constants[lookup.constant]
        lookup.require(used[torch.unique(constants[ORDER])] if lookup.constant.startswith(DATA) else used, report)


def lookups_of(graph: AtenGraph) -> list[Lookup]:
    """Where the step chooses places by numbers of its constants; of equal ones the first."""
    found: dict[tuple[object, ...], Lookup] = {}
    for node in graph.nodes:
        for operand in index_operands(node, lambda ref: graph.type_of(ref).shape):
            name = _origin(graph, operand.ref)
            if name is not None:
                kind = (name, operand.size, operand.least, operand.ignored)
                found.setdefault(kind, Lookup(name, node.source, operand))
    return list(found.values())


def _origin(graph: AtenGraph, reference: Ref) -> str | None:
    """The constant whose numbers a value shows as integers, or None; a batch of a constant shows its rows."""
    while reference.value >= len(graph.inputs):
        node = graph.nodes[reference.value - len(graph.inputs)]
        first = node.arguments[0] if node.arguments else None
        is_shown = node.operation in VIEWS or node.name.startswith("batch.")
        is_cut = node.operation == "aten._to_copy.default" and node.outputs[0].dtype in {"int64", "int32"}
        if not isinstance(first, Ref) or not (is_shown or is_cut):
            return None
        reference = first
    entry = graph.inputs[reference.value]
    return entry.name if entry.role is InputRole.CONSTANT else None
