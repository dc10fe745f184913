"""A captured step as a torch.fx module, for torch.compile and for double precision.

For measurements only. A solver trains with `pol.execution.stock_torch.torch_executor`, which checks the types of
all values.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, fx

from pol.execution.stock_torch.torch_executor import CREATED, allowed, resolved, results_of
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode
from pol.graph.capture.guards.index_ranges import index_operands


def to_module(graph: AtenGraph, device: str = "cpu", real: torch.dtype = torch.float32) -> fx.GraphModule:
    """The step as a function of its inputs, in the order of the graph; it returns the next state, then the observed.

    ``real`` stands in place of float32, for inputs (which the caller converts) and values. ``device`` is where tensors
    are made that no input leads to.

    Raises:
        ProtocolError: an operation or a dtype outside of the allow-list.
    """
    built = fx.Graph()
    values: list[tuple[fx.Node, ...]] = [(built.placeholder(f"input_{i}"),) for i in range(len(graph.inputs))]
    for node in graph.nodes:
        for operand in index_operands(node, lambda ref: graph.type_of(ref).shape):
            own = values[operand.ref.value][operand.ref.output]
            message = f"{node.name}: {node.operation} reads an index beside {operand.size} {operand.places}"
            built.call_function(_require, (own, operand.least, operand.size, operand.ignored, message))
        values.append(_call(built, node, values, torch.device(device), real))
    results = (*graph.next_state, *(ref for _, ref in graph.observed))
    built.output(tuple(values[ref.value][ref.output] for ref in results))
    return fx.GraphModule({}, built)


def _require(indices: Tensor, least: int, size: int, ignored: int | None, message: str) -> None:
    """Stop the step where an index does not exist; compiled modules stay whole."""
    exists = (indices >= least) & (indices < size)
    torch._assert_async((exists if ignored is None else exists | (indices == ignored)).all(), message)


def _call(
    built: fx.Graph, node: AtenNode, values: list[tuple[fx.Node, ...]], device: torch.device, real: torch.dtype
) -> tuple[fx.Node, ...]:
    allowed(node)

    def argument(given: Argument) -> Any:
        return resolved(
            given, lambda ref: values[ref.value][ref.output], lambda dtype: real if dtype is torch.float32 else dtype
        )

    arguments = tuple(argument(item) for item in node.arguments)
    keywords = {name: argument(item) for name, item in node.keywords}
    if node.operation in CREATED:
        keywords["device"] = device
    found = built.call_function(results_of, (node.operation, arguments, keywords))
    results = tuple(built.call_function(operator.getitem, (found, place)) for place in range(len(node.outputs)))
    if node.operation.startswith("pol.") and node.outputs[0].dtype == "float32":
        # Draws are defined in binary32 and converted afterwards.
        return (built.call_method("to", (*results, real)),)
    return results
