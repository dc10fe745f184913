"""Executes a captured step with torch's own kernels, as solvers train. Bits may differ between machines."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, fx

from pol.errors import OperationalError, ProtocolError
from pol.execution.stock_torch import torch_random
from pol.execution.stock_torch.defined_results import exact_int_mm, stable_sort, stable_topk
from pol.graph.aten_graph import WORD_TYPES, Argument, AtenGraph, AtenInput, AtenNode, Ref, TorchDType, references
from pol.graph.capture.guards.index_ranges import index_operands
from pol.graph.lowering import RULES

_MATRICES = 3


def grouped_mm(left: Tensor, right: Tensor, offs: Tensor | None = None) -> Tensor:
    """As torch's `_grouped_mm`, for any sizes: that one wants rows of a multiple of 16 bytes. Rows behind the last end
    are zero.

    Raises:
        RuntimeError: the operands do not fit.
    """
    try:
        return torch._grouped_mm(left, right, offs)
    except RuntimeError as error:
        if "multiple of 16 bytes" not in str(error):
            raise
    if offs is None:
        return torch.bmm(left, right)
    ends = [0, *offs.tolist()]
    parts = list(pairwise(ends))
    if left.dim() == right.dim():
        return torch.stack([left[:, start:end] @ right[start:end] for start, end in parts])
    result = left.new_zeros(left.shape[-2], right.shape[-1])
    for group, (start, end) in enumerate(parts):
        if left.dim() == _MATRICES:
            result[:, start:end] = left[group] @ right[:, start:end]
        else:
            result[start:end] = left[start:end] @ right[group]
    return result


grouped_mm._schema = torch.ops.aten._grouped_mm.default._schema  # type: ignore[attr-defined]  # as operations have one


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
    "aten._int_mm.default": exact_int_mm,
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
_MEMORY = frozenset(("Device", "Layout", "MemoryFormat"))
DTYPES: Mapping[str, torch.dtype] = {name: getattr(torch, name) for name in WORD_TYPES}
"""torch's dtypes by the names that graphs use."""


class NativeExecutor:
    """Steps of an ATen graph on a device. Graphs are untrusted, but they lower: rules refuse what torch doesn't check.

    Raises ProtocolError for an operation outside of ALLOWED (none other is looked up), a malformed argument, an index
    that does not exist, or a result of another type than the graph states.
    """

    def __init__(self, graph: AtenGraph, device: str = "cpu") -> None:
        for node in graph.nodes:
            allowed(node)
        self._indexed = {n.operation for n in graph.nodes if any(index_operands(n, lambda r: graph.type_of(r).shape))}
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
        if node.operation in self._indexed:
            for own in index_operands(node, lambda ref: values[ref.value][ref.output].shape):
                wrong = own.wrong(values[own.ref.value][own.ref.output])
                if wrong is not None:
                    raise ProtocolError(f"{node.name}: {node.operation} reads index {wrong} of {own.size} {own.places}")
        try:
            results = results_of(node.operation, arguments, keywords)
        except MemoryError as error:
            raise OperationalError(f"{node.name}: not enough memory") from error
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error):
                raise OperationalError(f"{node.name}: not enough memory on {self._device}") from error
            raise ProtocolError(f"{node.name}: {node.operation} rejects its arguments: {error}") from error
        actual = [(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in results]
        if actual != [(type_.dtype, type_.shape) for type_ in node.outputs]:
            raise ProtocolError(f"{node.name}: {node.operation} gives {actual}, the graph says {list(node.outputs)}")
        return results


def results_of(operation: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """The results of an operation in ALLOWED that its output mask (a last argument of booleans) selects."""
    found = ALLOWED[operation](*arguments, **keywords)
    results = found if isinstance(found, tuple | list) else (found,)
    mask = arguments[-1] if arguments else None
    if not isinstance(mask, list | tuple) or len(mask) != len(results) or not all(type(flag) is bool for flag in mask):
        mask = [True] * len(results)
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
    """The torch function of a node.

    Raises ProtocolError if its operation isn't in the allow-list, or if a number is a dtype or says where memory is:
    torch looks every number up in its tables.
    """
    if node.operation not in ALLOWED:
        raise ProtocolError(f"{node.name}: the operation {node.operation!r} is not in the allow-list")
    keywords = dict(node.keywords)
    for place, (name, kind) in enumerate(_kinds(node.operation)):
        given = node.arguments[place] if place < len(node.arguments) else keywords.get(name)
        if given is not None and (kind in _MEMORY or (kind == "ScalarType") != isinstance(given, TorchDType)):
            raise ProtocolError(f"{node.name}: {node.operation} takes no {given!r} as {name}")
    return ALLOWED[node.operation]


@cache
def _kinds(operation: str) -> list[tuple[str, str]]:
    """Names and kinds of the arguments of an operation."""
    arguments = ALLOWED[operation]._schema.arguments  # type: ignore[attr-defined]  # every ATen overload has one
    return [(item.name, str(item.real_type).removeprefix("Optional[").removesuffix("]")) for item in arguments]


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


def to_module(graph: AtenGraph, device: str = "cpu", real: torch.dtype = torch.float32) -> fx.GraphModule:
    """The step as a function of its inputs, in the order of the graph; it returns the next state, then the observed.

    ``real`` stands in place of float32, for inputs (which the caller converts) and values. ``device`` is where tensors
    are made that no input leads to.
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
