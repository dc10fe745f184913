"""The end of a traced graph that needs no second trace, as the update by a rule: it is copied instead.

A second trace makes writes functional and decomposes operations. Where neither is left to do, it would only repeat
itself, at the same cost for each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module

from pol.graph.capture.tracing.aten_recorder import IDENTITIES
from pol.graph.capture.tracing.provenance import PHASE
from pol.graph.lowering import RULES


@dataclass(frozen=True)
class FunctionalTail:
    """The last nodes of a graph, the values that they and its outputs take from the rest, and its outputs."""

    nodes: Sequence[Node]
    given: Sequence[Node]
    outputs: Sequence[Any]

    @classmethod
    def of(cls, graph: Graph, table: Mapping[Any, Callable[..., Any]]) -> FunctionalTail:
        """The longest tail of the update that neither writes nor shows memory, without operations of the table."""
        *nodes, output = graph.nodes
        begin = len(nodes)
        while begin and _is_plain(nodes[begin - 1], table):
            begin -= 1
        tail, outputs = nodes[begin:], list(output.args[0])
        inside = set(tail)
        read = [*(node for one in tail for node in one.all_input_nodes), *(o for o in outputs if isinstance(o, Node))]
        return cls(tail, [node for node in dict.fromkeys(read) if node not in inside], outputs)

    def head(self, module: GraphModule) -> GraphModule:
        """The rest of the graph; its outputs are the given values."""
        head, copies, inside = Graph(), dict[Node, Node](), set(self.nodes)
        for node in module.graph.nodes:
            if node not in inside and node.op != "output":
                copies[node] = head.node_copy(node, copies.__getitem__)
        head.output([copies[node] for node in self.given])
        with _use_lazy_graph_module(True):
            return _make_graph_module(module, head)

    def append_to(self, graph: Graph) -> None:
        """Put the tail behind a graph whose outputs are the given values."""
        output = graph.output_node()
        given: Any = output.args[0]
        copies = dict(zip(self.given, given, strict=True))
        with graph.inserting_before(output):
            for node in self.nodes:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        output.args = ([copies[item] if isinstance(item, Node) else item for item in self.outputs],)


def _is_plain(node: Node, table: Mapping[Any, Callable[..., Any]]) -> bool:
    target = node.target
    if (node.meta.get("custom") or {}).get(PHASE) != "update" or not isinstance(target, OpOverload):
        return False
    operands = [node, *node.all_input_nodes]
    if target in table or not all(_is_real(item.meta.get("val")) for item in operands):
        return False
    if str(target) in IDENTITIES:
        return True
    has_aliases = any(entry.alias_info is not None for entry in (*target._schema.arguments, *target._schema.returns))
    return str(target) in RULES and not has_aliases


def _is_real(value: object) -> bool:
    return isinstance(value, Tensor) and not value.is_complex()
