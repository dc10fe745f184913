"""The second run of a step: is it what the first trace has recorded?

Each operation is compared with the node of the first trace in its place. That needs no second graph, which costs more
than the operations on tensors without numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, autograd_would_have_decomposed
from torch.utils._pytree import tree_leaves

RUN: ContextVar[SecondRun | None] = ContextVar("run", default=None)
"""The second run that is active."""
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_DETACH = torch.ops.aten.detach.default
_LIFTED = {torch.ops.aten.lift_fresh.default: torch.ops.aten.lift_fresh_copy.default}
"""Operations that a trace records as others."""


class SecondRun(TorchDispatchMode):
    """While active, operations are compared with those of a first trace."""

    supports_higher_order_operators = True

    def __init__(self, first: GraphModule) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self.is_same = True
        self._first = first
        self._inputs = [node for node in first.graph.nodes if node.op == "placeholder"]
        calls = [node for node in first.graph.nodes if node.op == "call_function"]
        self._expected = iter([node for node in calls if _counts(node.target)])
        # By the identity of a tensor that the run holds: what it is in the first trace.
        self._names: dict[int, Hashable] = {}
        self._held: list[Tensor] = []

    def of(self, function: Callable[..., Any]) -> Callable[..., list[Any]]:
        """The function under comparison, for a trace; it returns nothing."""

        def run(*arguments: Any) -> list[Any]:
            for tensor, node in zip(tree_leaves(arguments), self._inputs, strict=True):
                self._name(tensor, node)
            token = RUN.set(self)
            try:
                with disable_proxy_modes_tracing(), self:
                    results = tree_leaves(function(*arguments))
            finally:
                RUN.reset(token)
            outputs = tree_leaves(self._first.graph.output_node().args[0], is_leaf=lambda item: item is None)
            self.is_same = (
                self.is_same
                and next(self._expected, None) is None
                and len(results) == len(outputs)
                and all(map(self._is_argument, results, outputs))
            )
            return []

        return run

    def node_of(self, tensor: Tensor) -> Node | None:
        """The node of the first trace; None for a tensor from outside."""
        name: Any = self._names.get(id(tensor))
        if not isinstance(name, tuple):
            return name  # type: ignore[no-any-return]  # a node or None
        return next((user for user in name[0].users if _name_of(user) == name), None)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, compared."""
        keywords = kwargs or {}
        if not _counts(func):
            result = func(*args, **keywords)
            if func is _DETACH:
                self._name(result, self._names.get(id(args[0]), args[0]))
            return result
        if isinstance(func, OpOverload) and autograd_would_have_decomposed(func, tree_leaves((args, keywords))):
            with self:
                result = func.decompose(*args, **keywords)  # as in a trace
                if result is not NotImplemented:
                    return result
        result = func(*args, **keywords)
        if self.is_same:
            node = next(self._expected, None)
            with DisableTorchFunction():
                self.is_same = (
                    node is not None
                    and node.target is _LIFTED.get(func, func)
                    and self._is_argument(args, node.args)
                    and sorted(keywords) == sorted(node.kwargs)
                    and all(self._is_argument(value, node.kwargs[key]) for key, value in keywords.items())
                )
            self._name(result, node)
        return result

    def _name(self, result: Any, name: Hashable) -> None:
        if isinstance(result, Tensor):
            self._names[id(result)] = name
            self._held.append(result)
        elif isinstance(result, tuple | list):
            for place, part in enumerate(result):
                self._name(part, (name, place))

    def _is_argument(self, given: Any, known: Any) -> bool:
        """Whether an argument is that of the first trace."""
        if isinstance(given, tuple | list) and isinstance(known, tuple | list):
            return len(given) == len(known) and all(map(self._is_argument, given, known))
        if not isinstance(known, Node):
            return repr(given) == repr(known)
        if isinstance(given, Tensor):
            name, other = self._names.get(id(given), given), _name_of(known)
            if isinstance(other, Node) and other.op == "get_attr":
                return _is_equal(getattr(self._first, str(other.target)), name)
            return not isinstance(name, Tensor) and name == other
        if isinstance(given, _SYMBOLS):
            return isinstance(known.meta.get("val"), _SYMBOLS)
        return known.op == "get_attr" and callable(given)  # a program that is an argument


@cache
def _counts(target: Any) -> bool:
    """Whether an operation is compared: one that gives tensors or nothing, not a mark or a copy without gradient."""
    if isinstance(target, OpOverload):
        returns = target._schema.returns
        has_tensors = not returns or any("Tensor" in str(item.type) for item in returns)
        return has_tensors and target is not _DETACH and target.namespace != "profiler"
    return target is not operator.getitem and isinstance(target, torch._ops.HigherOrderOperator)


def _name_of(node: Any) -> Hashable:
    """A node, or a result of it by number; of a detached one the original."""
    if node.target is _DETACH:
        return _name_of(node.args[0])
    return (_name_of(node.args[0]), node.args[1]) if node.target is operator.getitem else node


def _is_equal(left: Any, right: Any) -> bool:
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or isinstance(right, FakeTensor):
        return False
    if left is right or left.dtype != right.dtype or left.shape != right.shape:
        return left is right
    with _disable_current_modes():
        return torch.equal(left.view(-1).view(torch.uint8), right.view(-1).view(torch.uint8))
