"""Refuses data with class labels or tokens that are out of range, before a task is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenNode, InputRole, Ref
from pol.graph.capture.tracing.aten_recorder import VIEWS
from pol.graph.capture.tracing.step_inputs import DATA, ORDER
from pol.graph.refusals import Report, refuse


@dataclass(frozen=True)
class Lookup:
    """A constant whose integers choose from ``size`` rows; ``ignored`` stands for none."""

    constant: str
    size: int
    ignored: int | None
    rows: str
    source: str

    def require(self, indices: Tensor, report: Report = refuse) -> None:
        """Raises UnsupportedError for an index that does not exist."""
        if indices.numel() and int(indices.min()) >= 0 and int(indices.max()) < self.size:
            return  # as in almost all batches, at a third of the time
        wrong = indices[((indices < 0) | (indices >= self.size)) & (indices != self.ignored)]
        if wrong.numel():
            report(
                UnsupportedError(
                    f"{self.source} -- {self.constant} holds {int(wrong[0])}, but there are {self.size} {self.rows}: "
                    f"0 .. {self.size - 1}. Renumber it, or change the size of the layer"
                )
            )


def require_indices_in_range(graph: AtenGraph, constants: Mapping[str, Tensor], report: Report = refuse) -> None:
    """Raises UnsupportedError for an index in the data that the step looks up and that does not exist.

    `constants` are the constants of the graph by name. Only rows that the order names count. Indices that the step
    computes are not checked: an executor reads NaN where they are out of range.
    """
    for lookup in lookups_of(graph):
        used = constants[lookup.constant]
        if not used.is_floating_point():
            rows = used[torch.unique(constants[ORDER])] if lookup.constant.startswith(DATA) else used
            lookup.require(rows, report)


def lookups_of(graph: AtenGraph) -> list[Lookup]:
    """Where the step chooses rows by integers of its constants."""
    found = []
    for node in graph.nodes:
        for indices, size, ignored, rows in _lookups(graph, node):
            name = _origin(graph, indices)
            if name is not None:
                found.append(Lookup(name, size, ignored, rows, node.source))
    return found


def _lookups(graph: AtenGraph, node: AtenNode) -> Iterator[tuple[Ref, int, int | None, str]]:
    """The indices of a node, how many rows they choose from, the index that stands for none, and what a row is."""
    arguments = node.arguments
    operation = node.operation
    if operation == "aten.nll_loss_forward.default":
        table, indices, ignored = arguments[0], arguments[1], arguments[4]
        if isinstance(table, Ref) and isinstance(indices, Ref) and isinstance(ignored, int):
            yield indices, graph.type_of(table).shape[-1], ignored, "classes"
    elif operation == "aten.embedding.default":
        table, indices = arguments[0], arguments[1]
        if isinstance(table, Ref) and isinstance(indices, Ref):
            yield indices, graph.type_of(table).shape[0], None, "rows in the embedding"
    elif operation in {"aten.gather.default", "aten.index_select.default"}:
        table, axis, indices = arguments[0], arguments[1], arguments[2]
        if isinstance(table, Ref) and isinstance(axis, int) and isinstance(indices, Ref):
            yield indices, graph.type_of(table).shape[axis], None, "places to choose from"


def _origin(graph: AtenGraph, reference: Ref) -> str | None:
    """The constant whose numbers a value shows, or None; a batch of a constant shows its rows."""
    while reference.value >= len(graph.inputs):
        node = graph.nodes[reference.value - len(graph.inputs)]
        first = node.arguments[0] if node.arguments else None
        if not isinstance(first, Ref) or (node.operation not in VIEWS and not node.name.startswith("batch.")):
            return None
        reference = first
    entry = graph.inputs[reference.value]
    return entry.name if entry.role is InputRole.CONSTANT else None
