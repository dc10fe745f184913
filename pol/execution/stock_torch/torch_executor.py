"""Executes a captured step with torch's own kernels, as solvers train. Bits may differ between machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pol.errors import OperationalError, ProtocolError
from pol.execution.stock_torch import torch_random
from pol.execution.stock_torch.grouped_products import grouped_mm
from pol.execution.stock_torch.stable_order import stable_sort, stable_topk
from pol.graph.aten_graph import (
    WORD_TYPES,
    Argument,
    AtenGraph,
    AtenInput,
    AtenNode,
    Ref,
    TorchDType,
    references,
)
from pol.graph.lowering import RULES


def _overload(name: str) -> Callable[..., Any]:
    packet, overload = name.removeprefix("aten.").split(".")
    operation: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), overload)
    return operation


def _as_strided(value: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """Over the elements in row-major order: graphs know no other memory."""
    return value.reshape(-1).clone().as_strided(shape, strides, offset)


_as_strided._schema = torch.ops.aten.as_strided.default._schema  # type: ignore[attr-defined]  # as operations have one


ALLOWED: Mapping[str, Callable[..., Any]] = {
    **{name: _overload(name) for name in RULES if name.startswith("aten.")},
    # A graph has no strides, so it holds no copies that only change them: where a view isn't possible, reshape copies.
    **dict.fromkeys(("aten.view.default", "aten._unsafe_view.default"), _overload("reshape.default")),
    "aten.as_strided.default": _as_strided,
    "aten._grouped_mm.default": grouped_mm,
    "aten.topk.default": stable_topk,
    "aten.sort.default": stable_sort,
    **torch_random.DRAWS,
}
"""The only operations that a graph can run: those with a rule, each a pure function of tensors and numbers."""

CREATED = frozenset(
    f"aten.{name}"
    for name in (
        "full.default",
        "ones.default",
        "zeros.default",
        "scalar_tensor.default",
        "arange.default",
        "arange.start",
        "arange.start_step",
    )
)
"""Operations without a tensor operand, which have to be told the device."""
DTYPES: Mapping[str, torch.dtype] = {name: getattr(torch, name) for name in WORD_TYPES}
"""torch's dtypes by the names that graphs use."""


class NativeExecutor:
    """Steps of an ATen graph on a device. Graphs are untrusted: only operations in ALLOWED are ever looked up.

    Raises ProtocolError for an operation outside the allow-list, a malformed argument, or a result of another type
    than the graph states.
    """

    def __init__(self, graph: AtenGraph, device: str = "cpu") -> None:
        for node in graph.nodes:
            allowed(node)
        self._graph = graph
        self._device = torch.device(device)
        self._last_use = _last_uses(graph)

    def run(
        self, state: Sequence[Tensor], constants: Sequence[Tensor], step: int
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """The next state and the observed tensors; inputs are converted to the types and the device of the graph."""
        graph = self._graph
        given = [*state, *constants, torch.tensor(step, dtype=torch.int64)]
        if len(given) != len(graph.inputs):
            raise ProtocolError(f"{len(given) - 1} tensors were given for {len(graph.inputs) - 1} state and constants")
        values: dict[int, tuple[Tensor, ...]] = {}
        with torch.no_grad():
            for number, (entry, tensor) in enumerate(zip(graph.inputs, given, strict=True)):
                values[number] = (self._input(entry, tensor),)
            for position, node in enumerate(graph.nodes):
                values[len(graph.inputs) + position] = self.call(node, values)
                for number in self._last_use.get(position, ()):
                    del values[number]
            # Copies where a slot shows another one or an input, so that no two tensors share memory.
            next_state = [values[ref.value][ref.output].clone() for ref in graph.next_state]
            observed = {name: values[ref.value][ref.output].clone() for name, ref in graph.observed}
        return next_state, observed

    def _input(self, entry: AtenInput, tensor: Tensor) -> Tensor:
        if tuple(tensor.shape) != entry.type.shape:
            raise ProtocolError(f"{entry.name} has shape {tuple(tensor.shape)}, the graph says {entry.type.shape}")
        dtype = DTYPES[entry.type.dtype]
        if dtype.is_floating_point != tensor.dtype.is_floating_point:
            raise ProtocolError(f"{entry.name} is {tensor.dtype}, the graph says {entry.type.dtype}")
        return tensor.detach().to(device=self._device, dtype=dtype)

    def call(self, node: AtenNode, values: Mapping[int, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The results of one operation, with the values that it refers to by number."""

        def given(argument: Argument) -> Any:
            return resolved(argument, lambda ref: values[ref.value][ref.output], lambda dtype: dtype)

        arguments = [given(argument) for argument in node.arguments]
        keywords = {name: given(argument) for name, argument in node.keywords}
        if node.operation in CREATED:
            keywords["device"] = self._device
        try:
            result = ALLOWED[node.operation](*arguments, **keywords)
        except MemoryError as error:
            raise OperationalError(f"{node.name}: not enough memory") from error
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error):
                raise OperationalError(f"{node.name}: not enough memory on {self._device}") from error
            raise ProtocolError(f"{node.name}: {node.operation} rejects its arguments: {error}") from error
        results = tuple(result) if isinstance(result, tuple | list) else (result,)
        results = selected(results, arguments)
        actual = [(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in results]
        if actual != [(type_.dtype, type_.shape) for type_ in node.outputs]:
            raise ProtocolError(f"{node.name}: {node.operation} gives {actual}, the graph says {list(node.outputs)}")
        return results


def selected(results: Sequence[Tensor | None], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    """The results that an output mask (a last argument of booleans) selects."""
    last = arguments[-1] if arguments else None
    mask = [True] * len(results)
    if isinstance(last, list | tuple) and len(last) == len(results) and all(isinstance(flag, bool) for flag in last):
        mask = list(last)
    return tuple(item for item, flag in zip(results, mask, strict=True) if flag and item is not None)


def resolved(argument: Argument, value: Callable[[Ref], Any], dtype: Callable[[torch.dtype], torch.dtype]) -> Any:
    """An argument as torch takes it: values in place of references, lists in place of tuples, dtypes mapped.

    Raises ProtocolError for a dtype that graphs do not use.
    """
    if isinstance(argument, Ref):
        return value(argument)
    if isinstance(argument, TorchDType):
        if argument.name not in DTYPES:
            raise ProtocolError(f"the dtype {argument.name!r} is not in use here")
        return dtype(DTYPES[argument.name])
    if isinstance(argument, tuple):
        return [resolved(item, value, dtype) for item in argument]
    return argument


def allowed(node: AtenNode) -> Callable[..., Any]:
    """The torch function of a node; ProtocolError if its operation is not in the allow-list."""
    if node.operation not in ALLOWED:
        raise ProtocolError(f"{node.name}: the operation {node.operation!r} is not in the allow-list")
    return ALLOWED[node.operation]


def _last_uses(graph: AtenGraph) -> dict[int, list[int]]:
    """By node: the values that are used last there, so that their memory is freed early."""
    last: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        last[len(graph.inputs) + position] = position
        last.update((ref.value, position) for ref in references(node.all_arguments))
    for ref in (*graph.next_state, *(ref for _, ref in graph.observed)):
        last.pop(ref.value, None)
    uses: dict[int, list[int]] = {}
    for number, position in last.items():
        uses.setdefault(position, []).append(number)
    return uses
