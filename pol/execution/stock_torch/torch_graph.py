"""A captured step as a torch.fx module, for torch.compile and for double precision.

For measurements only. A solver trains with `pol.execution.stock_torch.torch_executor`, which checks the types of
all values.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from pol.execution.stock_torch.torch_executor import (
    ALLOWED,
    CREATED,
    allowed,
    resolved,
)
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode


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
        values.append(_call(built, node, values, torch.device(device), real))
    results = (*graph.next_state, *(ref for _, ref in graph.observed))
    built.output(tuple(values[ref.value][ref.output] for ref in results))
    return fx.GraphModule({}, built)


def _call(
    built: fx.Graph, node: AtenNode, values: list[tuple[fx.Node, ...]], device: torch.device, real: torch.dtype
) -> tuple[fx.Node, ...]:
    function = allowed(node)

    def argument(given: Argument) -> Any:
        return resolved(
            given,
            lambda ref: values[ref.value][ref.output],
            lambda dtype: real if dtype is torch.float32 else dtype,
        )

    arguments = tuple(argument(item) for item in node.arguments)
    keywords = {name: argument(item) for name, item in node.keywords}
    if node.operation in CREATED:
        keywords["device"] = device
    result = built.call_function(function, arguments, keywords)
    if node.operation.startswith("pol.") and node.outputs[0].dtype == "float32":
        # Draws are defined in binary32 and converted afterwards.
        return (built.call_method("to", (result, real)),)
    if len(node.outputs) == 1 and not _gives_several(node):
        return (result,)
    return tuple(built.call_function(operator.getitem, (result, place)) for place in _places(node))


def _gives_several(node: AtenNode) -> bool:
    """Whether the operation gives a tuple or a list, even if one tensor of it is used."""
    returns = ALLOWED[node.operation]._schema.returns  # type: ignore[attr-defined]  # every ATen overload has one
    return len(returns) > 1 or str(returns[0].type).startswith("List")


def _places(node: AtenNode) -> list[int]:
    """Positions of the outputs among all results of the operation: an output mask (booleans, last) leaves some out."""
    last = node.arguments[-1] if node.arguments else None
    if isinstance(last, tuple) and last and all(isinstance(flag, bool) for flag in last):
        return [place for place, flag in enumerate(last) if flag]
    return list(range(len(node.outputs)))
