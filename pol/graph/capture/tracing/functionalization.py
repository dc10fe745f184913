"""Replays a traced graph so that functionalization sees every effect, with pairs of reals for complex numbers.

torch's native_batch_norm writes its running statistics, but its schema does not say so: the graph would lose them.

A node whose memory nobody writes is the same node afterwards, or the same nodes as another of its kind: it is copied,
which takes a hundredth of the time of running it on tensors without numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch._C._functorch import _unwrap_functional_tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Interpreter, Node, Proxy
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    track_tensor_tree,
)
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map

from pol.errors import UnsupportedError
from pol.graph.capture.optimizers.repeated_update import nodes_behind
from pol.graph.capture.replacements.complex.pairs import complex_call, constant_pairs, is_complex_call
from pol.graph.capture.tracing.aten_recorder import IDENTITIES
from pol.graph.capture.tracing.provenance import SOURCE
from pol.graph.lowering import RULES

_WHOLE = [True, True, True]


_VIEWS: Mapping[Any, Any] = {
    torch.ops.aten.squeeze_.dim: torch.ops.aten.squeeze.dim,
    torch.ops.aten.squeeze_.default: torch.ops.aten.squeeze.default,
    torch.ops.aten.unsqueeze_.default: torch.ops.aten.unsqueeze.default,
    torch.ops.aten.transpose_.default: torch.ops.aten.transpose.int,
    torch.ops.aten.t_.default: torch.ops.aten.t.default,
}
"""Changes of a tensor's own shape; a trace reads the result wherever the tensor is read afterwards."""


_STRIDED = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_.default}
_REWRITTEN = {
    *_STRIDED,
    torch.ops.aten.lift_fresh_copy.default,  # its numbers are known
    torch.ops.aten.native_batch_norm.default,
    torch.ops.aten.native_batch_norm_backward.default,
    torch.ops.aten.native_layer_norm_backward.default,
    torch.ops.aten.native_group_norm_backward.default,
}
"""Operations that a replay runs in another way."""


@dataclass(frozen=True)
class _Traced:
    """The nodes of an operation in the trace, its operands and its results."""

    nodes: Sequence[Node]
    operands: Sequence[Node]
    results: Any

    def repeated(self, graph: Graph, operands: Sequence[Node], source: Node) -> Any:
        """The results of the same nodes for other operands."""
        copies = dict(zip(self.operands, operands, strict=True))
        for node in self.nodes:
            copies[node] = graph.node_copy(node, copies.__getitem__)
            copies[node].meta["custom"] = source.meta.get("custom")
        return tree_map(lambda node: node and copies[node], self.results)


class FunctionalReplay(Interpreter):
    """Runs a graph; batch normalization by operations that write nothing, complex numbers as pairs of reals.

    It is traced with the ``table`` of replacements, on the tensors without numbers that are the graph's inputs.
    """

    def __init__(self, graph: GraphModule, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__(graph)
        self.extra_traceback = False  # it would be added to the messages of refusals
        self._pairs = constant_pairs(graph)
        self._table = table
        self._written = _written(graph.graph)
        # By node: that of the trace with its value, in the layout of the first trace; of several results theirs.
        self._copies: dict[Node, Node] = {}
        self._parts: dict[Any, list[Node | None]] = {}
        self._kinds: dict[Hashable, _Traced] = {}

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor outside of the step, one that functionalization follows: what is made of it may be written to."""
        value = self._pairs[target] if target in self._pairs else super().get_attr(target, args, kwargs)
        return torch.ops.aten.lift_fresh.default(value) if isinstance(value, Tensor) else value

    def run_node(self, n: Node) -> Any:
        """The result of a node; None where its nodes are copied."""
        mode = get_proxy_mode()
        assert mode is not None, "a replay is traced"
        tracer: Any = mode.tracer
        graph: Graph = tracer.graph
        if n.target is operator.getitem and n.args[0] in self._parts:
            part = self._parts[n.args[0]][n.args[1]]  # type: ignore[index]  # a number
            self._copies.update({} if part is None else {n: part})
            return None
        operands, kind = n.all_input_nodes, None
        if n.op == "call_function" and n not in self._written and all(item in self._copies for item in operands):
            if self._is_kept(n):
                self._copies[n] = graph.node_copy(n, self._copies.__getitem__)
                return None
            kind = _kind(n)
            if kind in self._kinds:
                self._note(n, self._kinds[kind].repeated(graph, [self._copies[item] for item in operands], n))
                return None
        for item in operands:
            if self.env[item] is None and item in self._copies:
                self.env[item] = _shown(self._copies[item], item.meta["val"], tracer)
        last = next(iter(reversed(graph.nodes)))
        value = self._result(n)
        found = None if n in self._written else _nodes_of(value, n.meta.get("val"), tracer)
        if found is not None:
            self._note(n, found)
            nodes = list(nodes_behind(last))
            if kind is not None and all(node.op == "call_function" for node in nodes):
                self._kinds[kind] = _Traced(nodes, [self._copies[item] for item in operands], found)
        return value

    def _note(self, n: Node, found: Any) -> None:
        if isinstance(found, Node):
            self._copies[n] = found
        else:
            self._parts[n] = found

    def _is_kept(self, n: Node) -> bool:
        """Whether a node stays as it is."""
        target = n.target
        if target is operator.getitem:
            return True
        # A view exists in the layout of the first trace.
        is_replaced = (target in self._table and target is not torch.ops.aten.view.default) or target in _REWRITTEN
        is_known = str(target) in RULES or str(target) in IDENTITIES
        results = tree_leaves(n.meta.get("val"))
        return is_known and not is_replaced and not any(isinstance(r, Tensor) and r.is_complex() for r in results)

    def _result(self, n: Node) -> Any:
        """The value of a node, in order; `as_strided` is one of its operand's elements, which may lie in another."""
        if n.target in _STRIDED:
            with self._set_current_node(n):
                (value, *rest), _ = self.fetch_args_kwargs_from_env(n)
                return _restrided(value, n.all_input_nodes[0].meta["val"], *rest)
        value = super().run_node(n)
        # A copy, so that updates in place stay inside the graph and become ordinary values.
        return value.clone() if n.op == "placeholder" and n in self._written else value

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operation, or one that functionalization sees through."""
        if target is not operator.getitem and is_complex_call(target, args, kwargs):
            mark = fx_traceback.get_current_meta().get("custom") or {}
            return complex_call(target, args, kwargs, mark.get(SOURCE, "the step"))
        target = _VIEWS.get(target, target)
        if target is torch.ops.aten.view.default:
            return _viewed(*args)
        if target is torch.ops.aten.native_batch_norm.default:
            return _batch_norm(*args)
        if target is torch.ops.aten.native_batch_norm_backward.default and not args[7]:
            return _fixed_batch_norm_backward(*args)
        # All gradients are computed, with a weight of ones where there is none; unused ones are dropped later.
        if target is torch.ops.aten.native_batch_norm_backward.default:
            return target(*args[:-1], _WHOLE)
        if target is torch.ops.aten.native_layer_norm_backward.default:
            gradient, value, shape, mean, scale, weight, bias, _ = args
            weight = value.new_ones(shape) if weight is None else weight
            return target(gradient, value, shape, mean, scale, weight, weight if bias is None else bias, _WHOLE)
        if target is torch.ops.aten.native_group_norm_backward.default:
            gradient, value, mean, scale, weight, samples, channels, *rest, _ = args
            weight = value.new_ones(channels) if weight is None else weight
            return target(gradient, value, mean, scale, weight, samples, channels, *rest, _WHOLE)
        return super().call_function(target, args, kwargs)


def _written(graph: Graph) -> set[Node]:
    """The nodes that share memory with one that some operation writes."""
    groups: dict[Node, list[Node]] = {}
    written: list[Node] = []
    for node in graph.nodes:
        groups[node] = [node]
        for operand, is_written in _aliases(node):
            own, other = groups[node], groups[operand]
            if own is not other:
                other += own
                groups.update(dict.fromkeys(own, other))
            written += [operand] * is_written
    return {member for node in written for member in groups[node]}


def _aliases(node: Node) -> Iterator[tuple[Node, bool]]:
    """Operands that the results may share memory with, and whether the operation writes them."""
    target = node.target
    if target is torch.ops.aten.native_batch_norm.default:
        yield from ((operand, True) for operand in node.args[3:5] if isinstance(operand, Node))
    elif isinstance(target, OpOverload):
        for parameter, argument in zip(target._schema.arguments, node.args, strict=False):
            if parameter.alias_info is not None:
                nodes = [item for item in tree_leaves(argument) if isinstance(item, Node)]
                yield from ((item, parameter.alias_info.is_write) for item in nodes)
    elif node.op == "call_function":
        yield from ((operand, target is not operator.getitem) for operand in node.all_input_nodes)


def _kind(node: Node) -> Hashable:
    """What decides the nodes of an operation: arguments, layouts of operands, and which of them are the same."""
    operands = node.all_input_nodes
    places = {item: f"%{place}" for place, item in enumerate(operands)}
    with DisableTorchFunction():
        forms = [_form(item.meta["val"]) for item in operands]
    return node.target, repr(map_arg((node.args, node.kwargs), places.__getitem__)), repr(forms)


def _nodes_of(value: Any, known: Any, tracer: Any) -> Node | list[Node | None] | None:
    """The node of a tensor, or of each in a list; None if one has none, or another type or layout than the known."""
    if isinstance(known, tuple | list) and isinstance(value, tuple | list):
        found = [_nodes_of(one, other, tracer) for one, other in zip(value, known, strict=True)]
        is_whole = all(node is not None or one is None for node, one in zip(found, value, strict=True))
        return found if is_whole else None  # type: ignore[return-value]  # lists hold tensors
    if not isinstance(value, Tensor) or not isinstance(known, Tensor):
        return None
    with DisableTorchFunction():
        inner, forms = _unwrap_functional_tensor(value, True), [_form(value), _form(known)]
        slot = get_proxy_slot(inner, tracer, None)
    return slot.proxy.node if slot is not None and forms[0] == forms[1] else None


def _shown(node: Node, like: Tensor, tracer: Any) -> Tensor:
    """A tensor without numbers that functionalization follows, for the value of a node."""
    with disable_proxy_modes_tracing(), DisableTorchFunction():
        tensor = torch.empty_strided(tuple(like.shape), like.stride(), dtype=like.dtype, device=like.device)
        inner = _unwrap_functional_tensor(tensor, True)
        track_tensor_tree(inner, Proxy(node, tracer), constant=None, tracer=tracer)
    return tensor


def _form(tensor: Tensor) -> Hashable:
    return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _viewed(value: Tensor, shape: Any) -> Tensor:
    """A view; a copy where the pairs of complex numbers lie in another order than torch's complex numbers."""
    try:
        return torch.ops.aten.view.default(value, shape)  # type: ignore[no-any-return]  # a tensor
    except (RuntimeError, ValueError):
        return value.reshape(shape)


def _restrided(
    value: Tensor, known: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Tensor:
    """The words at strides in the memory of a tensor whose layout is that of `known`.

    Raises UnsupportedError where they are not all words of the tensor itself.
    """
    kept = zip(known.shape, known.stride(), strides, strict=False)
    if tuple(shape) == tuple(known.shape) and all(size == 1 or before == after for size, before, after in kept):
        return value
    order = sorted(range(known.dim()), key=lambda axis: (known.stride()[axis], known.shape[axis]), reverse=True)
    flat = value.permute(order).reshape(-1)
    start = 0 if offset is None else offset - known.storage_offset()
    end = start + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    dense, count = True, 1
    for axis in reversed(order):
        dense = dense and (known.size(axis) == 1 or known.stride(axis) == count)
        count *= known.size(axis)
    if not dense or start < 0 or end >= count:
        line = (fx_traceback.get_current_meta().get("custom") or {}).get(SOURCE, "the step")
        raise UnsupportedError(
            f"{line} -- as_strided reads memory that is not its tensor's own: apply it to a contiguous tensor, or use "
            "slices, unfold and permute"
        )
    # Of a contiguous tensor it is a view: later code may write through it.
    flat = value if known.is_contiguous() and value.is_contiguous() else flat.clone()
    seen: Tensor = torch.ops.aten.as_strided.default(flat, shape, strides, start)
    return seen


def _batch_norm(
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    if mean is None or variance is None:
        by_batch = torch.ops.aten._native_batch_norm_legit.no_stats
        return tuple(by_batch(value, weight, bias, training, momentum, epsilon))
    if training:
        functional = torch.ops.aten._native_batch_norm_legit_functional.default
        *results, next_mean, next_variance = functional(
            value, weight, bias, mean, variance, training, momentum, epsilon
        )
        mean.copy_(next_mean)
        variance.copy_(next_variance)
        return tuple(results)
    scale = torch.rsqrt(variance + epsilon)
    result = (value - _channels(mean, value)) * _channels(scale, value)
    result = result if weight is None else result * _channels(weight, value)
    result = result if bias is None else result + _channels(bias, value)
    # The statistics of the batch are unused here.
    return result.to(value.dtype), mean.new_zeros(1), mean.new_zeros(1)


def _fixed_batch_norm_backward(
    gradient: Tensor,
    value: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    save_mean: Tensor,
    save_scale: Tensor,
    training: bool,
    epsilon: float,
    mask: list[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients where the running statistics, and not those of the batch, are used."""
    scale = torch.rsqrt(variance + epsilon)
    axes = [0, *range(2, value.dim())]
    slope = scale if weight is None else scale * weight
    by_value = (gradient * _channels(slope, value)).to(value.dtype) if mask[0] else None
    normal = (value - _channels(mean, value)) * _channels(scale, value)
    by_weight = (gradient * normal).sum(axes) if mask[1] else None
    by_bias = gradient.sum(axes) if mask[2] else None
    if weight is not None:
        by_weight = by_weight if by_weight is None else by_weight.to(weight.dtype)
        by_bias = by_bias if by_bias is None else by_bias.to(weight.dtype)
    return by_value, by_weight, by_bias


def _channels(part: Tensor, value: Tensor) -> Tensor:
    """A number per channel, over the second dimension of `value`."""
    return part.reshape(-1, *[1] * (value.dim() - 2))
