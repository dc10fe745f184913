"""Updates of parameters of one kind: the first is traced, the others repeat its nodes.

A trace runs each operation on tensors without numbers, which takes a hundred times as long as the copy of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch._C import DisableTorchFunction
from torch.fx import Node, Proxy
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    track_tensor_tree,
)

Update = Callable[..., Sequence[Tensor]]


@dataclass(frozen=True)
class _Traced:
    """The nodes of an update, its operands and its results with the node of each."""

    nodes: Sequence[Node]
    operands: Mapping[Node, Tensor]
    results: Sequence[tuple[Tensor, Node]]


class RepeatedUpdates:
    """The updates of one turn of an optimizer."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Traced] = {}

    def run(self, kind: Hashable, update: Update, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """`update(*operands)`; all updates of a kind are the same operations on tensors of the same shapes and layouts.

        What `update` takes besides its operands is the same tensor in each update of the kind.
        """
        mode = get_proxy_mode()
        if mode is None:
            return update(*operands)
        tracer: Any = mode.tracer
        given = [_node(tracer, operand) for operand in operands]
        with DisableTorchFunction():  # the modes of a trace take each look at a tensor for a function of the user
            forms = [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in operands]
        key = (kind, *forms, *(given.index(node) for node in given))  # the same tensor may be several operands
        known = self._known.get(key)
        if known is None:
            last = next(iter(reversed(tracer.graph.nodes)))
            results = update(*operands)
            pairs = [(result, _node(tracer, result)) for result in results]
            self._known[key] = _Traced(list(nodes_behind(last)), dict(zip(given, operands, strict=True)), pairs)
            return results
        own = dict(zip(known.operands, dict(zip(given, operands, strict=True)).items(), strict=True))
        copies = {before: node for before, (node, _) in own.items()}
        for node in known.nodes:
            copies[node] = tracer.graph.node_copy(node, lambda item: copies.get(item, item))
        return [
            own[node][1] if node in own else _tracked(tracer, result, copies.get(node, node))
            for result, node in known.results
        ]


def _tracked(tracer: Any, like: Tensor, node: Node) -> Tensor:
    """A tensor without numbers that stands for a node."""
    with disable_proxy_modes_tracing(), DisableTorchFunction():
        tensor = like.clone()
        return track_tensor_tree(tensor, Proxy(node, tracer), constant=None, tracer=tracer)


def _node(tracer: Any, tensor: Tensor) -> Node:
    node: Node = get_proxy_slot(tensor, tracer).proxy.node
    return node


def nodes_behind(last: Node) -> Iterator[Node]:
    """The nodes of a graph after one of them."""
    node = last.next
    while node.op != "root":
        yield node
        node = node.next
