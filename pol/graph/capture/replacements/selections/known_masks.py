"""Masks that don't depend on data, such as `~torch.eye(n).bool()`: their numbers are known while the code is traced."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes

from pol.graph.capture.tracing.second_run import RUN

_PLACES = "pol.places"
"""The answers for a mask, kept at its node for the second run."""
_LARGEST = 1 << 24
"""Elements of a tensor that is computed here."""


class _Known:
    """The values of the nodes of a graph that depend on no placeholder and draw nothing."""

    def __init__(self) -> None:
        self.values: dict[fx.Node, Any] = {}
        self.last: fx.Node | None = None
        self.spoiled: set[int] = set()


_GRAPHS: WeakKeyDictionary[fx.Graph, _Known] = WeakKeyDictionary()


def known_places(mask: Tensor) -> list[int] | None:
    """Where a traced mask is true, in the order of its elements, or None if that depends on the step."""
    mode, run = get_proxy_mode(), RUN.get()
    if mode is None and run is None:
        return None
    if not isinstance(mask, FakeTensor):  # a constant of the user's code
        with _disable_current_modes():
            constant: list[int] = mask.flatten().nonzero().flatten().tolist()
            return constant
    if mode is None:
        known = None if run is None else run.node_of(mask)
        answers: list[list[int] | None] = [] if known is None else known.meta.get(_PLACES, [])
        return answers.pop(0) if answers else None
    slot = get_proxy_slot(mask, mode.tracer, None)
    if slot is None:
        return None
    node = slot.proxy.node
    state = _GRAPHS.setdefault(node.graph, _Known())
    with _disable_current_modes(), torch.no_grad():
        _advance(state, node.graph, getattr(mode.tracer, "root", None))
        found, places = state.values.get(node), None
        if isinstance(found, Tensor) and _memory(found) not in state.spoiled:
            places = found.flatten().nonzero().flatten().tolist()
        node.meta.setdefault(_PLACES, []).append(places)
        return places


def _advance(state: _Known, graph: fx.Graph, root: Any) -> None:
    """Compute what was traced since the last time, in order, so that writes in place are seen."""
    started = state.last is None
    for node in graph.nodes:
        if started:
            _compute(state, node, root)
            state.last = node
        elif node is state.last:
            started = True


def _compute(state: _Known, node: fx.Node, root: Any) -> None:
    if node.op == "get_attr":
        constant = getattr(root, str(node.target), None)
        if isinstance(constant, Tensor) and constant.numel() <= _LARGEST:
            state.values[node] = constant.detach().clone()
        return
    if node.op != "call_function":
        return
    inputs = node.all_input_nodes
    schema = getattr(node.target, "_schema", None)
    fake = node.meta.get("val")
    tags = getattr(node.target, "tags", ())
    is_known = (
        all(item in state.values for item in inputs)
        and torch.Tag.nondeterministic_seeded not in tags
        and not (isinstance(fake, Tensor) and fake.numel() > _LARGEST)
    )
    if is_known:
        try:
            arguments = fx.node.map_arg((node.args, node.kwargs), state.values.__getitem__)
            state.values[node] = node.target(*arguments[0], **arguments[1])  # type: ignore[operator]  # a function
        except (RuntimeError, IndexError, ValueError, TypeError):
            is_known = False
    if not is_known and schema is not None and schema.is_mutable:
        state.spoiled.update(_memory(state.values[item]) for item in inputs if _is_tensor(state.values.get(item)))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
