"""Turns a traced graph into an AtenGraph, with references instead of objects, and readable names."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from pol.errors import ProtocolError, UnsupportedError
from pol.graph.aten_graph import (
    WORD_TYPES,
    Argument,
    AtenGraph,
    AtenInput,
    AtenNode,
    AtenType,
    InputRole,
    Ref,
    TorchDType,
)
from pol.graph.capture.tracing.provenance import PHASE, ROLE, SOURCE
from pol.graph.lowering import RULES
from pol.graph.lowering.advice import undefined
from pol.graph.refusals import Report, refuse

IDENTITIES = frozenset(f"aten.{name}.default" for name in ("clone", "detach", "alias", "lift_fresh", "lift_fresh_copy"))
"""Operations that return their first argument: a functional graph needs no copies."""

VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "transpose.int", "permute.default", "view.default", "_unsafe_view.default", "unsqueeze.default",
        "squeeze.default", "squeeze.dim", "squeeze.dims", "expand.default",
    )
)  # fmt: skip
"""Operations that show the numbers of their first argument: a name given to them belongs to it."""

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

PLACEMENT = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})
"""Arguments about the memory of a tensor, not about its numbers."""


BATCH_OF_NORM = {
    "aten._native_batch_norm_legit_functional.default": 0,
    "aten._native_batch_norm_legit.no_stats": 0,
    "aten.native_layer_norm.default": 0,
    "aten.native_group_norm.default": 0,
    "aten.native_batch_norm_backward.default": 1,
    "aten.native_layer_norm_backward.default": 1,
    "aten.native_group_norm_backward.default": 1,
}
"""The place of the batch: their first result has its type, the others that of the statistics."""


class AtenRecorder:
    """Records one traced graph: inputs, nodes and constants of an AtenGraph."""

    def __init__(self, inputs: Sequence[AtenInput], seed: Tensor, report: Report = refuse) -> None:
        self.inputs = list(inputs)
        self._report = report
        self._seed = seed
        self.nodes: list[AtenNode] = []
        self._marks: list[Mapping[str, str]] = []
        self.constants: list[Tensor] = []
        self._values: dict[FxNode, Argument] = {}
        # The outputs of torch that exist: those that an output mask leaves out are no outputs of the graph's node.
        self._places: dict[Any, list[int]] = {}

    def record(self, graph: GraphModule) -> list[Argument]:
        """Read the whole graph; returns its flat outputs."""
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._lift_attributes(graph)
        step = len(self.inputs) - 1
        numbers = [*range(len(placeholders) - 1), step]
        self._values.update((node, Ref(number)) for node, number in zip(placeholders, numbers, strict=True))
        for node in graph.graph.nodes:
            if node.op == "call_function":
                self._values[node] = self._call(node)
            elif node.op == "output":
                return [
                    self._argument(item) for item in torch.utils._pytree.tree_leaves(node.args[0], is_leaf=_is_none)
                ]
        raise AssertionError("a traced graph has an output")

    def name(
        self, gradients: Mapping[str, Ref], updates: Mapping[str, Ref], kinds: Mapping[str, str], optimizer: str
    ) -> None:
        """Name the nodes: gradients and next state by their slots, the rest by phase, operation and number.

        `kinds` are the optimizers of the slots, `optimizer` stands for all.
        """
        names = [mark.get(ROLE, "") for mark in self._marks]
        sources = [node.source for node in self.nodes]
        for prefix, suffix, targets in (("", ".grad", gradients), ("update.", "", updates)):
            for slot, reference in targets.items():
                position = self._behind_views(reference)
                if position is not None and not names[position]:
                    names[position] = f"{prefix}{slot}{suffix}"
        owners = self._owners(updates)
        counts: Counter[str] = Counter()
        for position, node in enumerate(self.nodes):
            phase = self._marks[position].get(PHASE, "step")
            if phase == "update":
                owner = owners.get(position, "")
                phase += f".{owner}" if owner else ""
                sources[position] = f"optimizer.step: {kinds.get(owner, optimizer)}" + (f" ({owner})" if owner else "")
            if not names[position]:
                stem = f"{phase}.{node.operation.split('.')[1].strip('_')}"
                counts[stem] += 1
                names[position] = f"{stem}_{counts[stem]}"
        self.nodes = [
            AtenNode(node.operation, node.arguments, node.keywords, node.outputs, name, source)
            for node, name, source in zip(self.nodes, names, sources, strict=True)
        ]

    def _lift_attributes(self, graph: GraphModule) -> None:
        """Tensors that the user's code closed over become constants, before the step."""
        known: dict[str, Ref] = {}
        for node in graph.graph.nodes:
            if node.op != "get_attr":
                continue
            target = str(node.target)
            if target not in known:
                tensor = getattr(graph, target)
                known[target] = Ref(len(self.inputs) - 1)
                is_seed = tensor.untyped_storage()._cdata == self._seed.untyped_storage()._cdata
                name = "seed" if is_seed else f"constant.{len(self.constants)}"
                lines = [(user.meta.get("custom") or {}).get(SOURCE) for user in node.users]
                what = " -- ".join([*filter(None, lines[:1]), "a tensor that the step reads"])
                entry = AtenInput(InputRole.CONSTANT, name, reported_type(what, tensor, self._report))
                self.inputs.insert(len(self.inputs) - 1, entry)
                self.constants.append(tensor)
            self._values[node] = known[target]

    def _call(self, node: FxNode) -> Argument:
        arguments = tuple(self._argument(argument) for argument in node.args)
        if node.target is operator.getitem:
            source, output = arguments
            if not isinstance(source, Ref) or not isinstance(output, int):
                raise AssertionError("getitem takes an output of a node")
            places = self._places[node.args[0]]
            return Ref(source.value, places.index(output)) if output in places else None
        operation = str(node.target)
        if operation in IDENTITIES:
            return arguments[0]
        mark = node.meta.get("custom") or {}
        source_line = mark.get(SOURCE) or mark.get(PHASE, "step")
        value = node.meta.get("val")
        results = list(value) if isinstance(value, tuple | list) else [value]
        tensors = [item for item in results if isinstance(item, Tensor)]
        if any(isinstance(item, _SYMBOLS) for item in results) or not all(map(_is_static, tensors)):
            self._report(data_dependent(source_line, operation))
            return 1
        if operation not in RULES or any(item is not None and not isinstance(item, Tensor) for item in results):
            self._report(undefined(source_line, operation))
        self._places[node] = [position for position, item in enumerate(results) if item is not None]
        given = [item.meta.get("val") for item in node.all_input_nodes]
        is_told = any(isinstance(item, Tensor) and str(item.dtype)[6:] not in WORD_TYPES for item in given)
        report = _ignore if is_told and self._report is not refuse else self._report
        outputs = tuple(
            reported_type(f"{source_line} -- the result of {operation}", tensor, report) for tensor in tensors
        )
        if operation in BATCH_OF_NORM:
            outputs = _of_norm(outputs, node, BATCH_OF_NORM[operation])
        keywords = {key: value for key, value in node.kwargs.items() if key not in PLACEMENT}
        pairs = tuple(sorted((key, self._argument(value)) for key, value in keywords.items()))
        self.nodes.append(AtenNode(operation, arguments, pairs, outputs, "", source_line))
        self._marks.append(mark)
        return Ref(len(self.inputs) + len(self.nodes) - 1)

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, FxNode):
            return self._values[value]
        if isinstance(value, list | tuple):
            return tuple(self._argument(item) for item in value)
        if isinstance(value, torch.dtype):
            return TorchDType(str(value).removeprefix("torch."))
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise UnsupportedError(f"an operation has the argument {value!r}, which a step program cannot hold")

    def _behind_views(self, reference: Ref) -> int | None:
        """Position of the node that computes a value, behind views; None for an input."""
        while reference.value >= len(self.inputs):
            position = reference.value - len(self.inputs)
            node = self.nodes[position]
            first = node.arguments[0] if node.arguments else None
            if node.operation not in VIEWS or not isinstance(first, Ref):
                return position
            reference = first
        return None

    def _owners(self, updates: Mapping[str, Ref]) -> dict[int, str]:
        """By node of the optimizer step: the slot that it updates."""
        owners: dict[int, str] = {}
        for slot, reference in updates.items():
            pending = [reference]
            while pending:
                position = pending.pop().value - len(self.inputs)
                if position < 0 or position in owners or self._marks[position].get(PHASE) != "update":
                    continue
                owners[position] = slot
                pending += [value for value in self.nodes[position].arguments if isinstance(value, Ref)]
        return owners


def tensor_type(what: str, tensor: Tensor) -> AtenType:
    """The type of a tensor; UnsupportedError if it has no words."""
    try:
        return AtenType(str(tensor.dtype).removeprefix("torch."), tuple(int(size) for size in tensor.shape))
    except ProtocolError as error:
        advice = "; convert it with .float() or .long(), and use autocast in bfloat16" if "dtype" in str(error) else ""
        if tensor.is_complex():
            advice = "; give pairs of reals, torch.view_as_real, and read them as torch.view_as_complex"
        raise UnsupportedError(f"{what}: {error}{advice}") from error


def _ignore(error: UnsupportedError) -> None:
    """A refusal that follows from one that is reported."""


def reported_type(what: str, tensor: Tensor, report: Report) -> AtenType:
    """The type of a tensor; where it has no words and the report returns, a type of the same shape."""
    try:
        return tensor_type(what, tensor)
    except UnsupportedError as error:
        report(error)
        return AtenType("float32" if tensor.is_floating_point() else "int64", tuple(tensor.shape))


def data_dependent(line: str, cause: str) -> UnsupportedError:
    """The error for code whose course or shapes depend on numbers that only the data decides."""
    if cause.startswith("aten.") and "_local_scalar_dense" not in cause:
        return undefined(line, cause)
    if re.search(r"\bint\(", line):
        return UnsupportedError(
            f"{line} -- the course of the program depends on a number of a tensor ({cause}). A step program is static: "
            "leave .item() and int() out. A place in a queue may stay a tensor: queue.index_copy_(0, (pointer + "
            "torch.arange(n)) % len(queue), rows), pointer.copy_((pointer + n) % len(queue))"
        )
    return UnsupportedError(
        f"{line} -- the course of the program depends on the values of tensors ({cause}). A step program is static: "
        "replace .item() and `if tensor:` by torch.where or a product with a mask; leave out what only skips an empty "
        "selection, as `if mask.any():` does"
    )


def _of_norm(outputs: tuple[AtenType, ...], node: FxNode, batch: int) -> tuple[AtenType, ...]:
    """Correct the trace: statistics and their gradients are binary32 as soon as one of the operands is."""
    given = [str(item.meta["val"].dtype)[6:] for item in node.args if isinstance(item, FxNode)]
    if given[batch] not in {"float32", "bfloat16"}:
        return outputs
    dtypes = [given[batch], *["float32" if "float32" in given else given[batch]] * (len(outputs) - 1)]
    return tuple(AtenType(dtype, type_.shape) for dtype, type_ in zip(dtypes, outputs, strict=True))


def _is_static(tensor: Tensor) -> bool:
    return all(type(size) is int for size in tensor.shape)


def _is_none(value: object) -> bool:
    return value is None


def graph_of(recorder: AtenRecorder, next_state: Sequence[Argument], losses: Sequence[Argument]) -> AtenGraph:
    """The finished graph with its outputs."""
    state = tuple(item for item in next_state if isinstance(item, Ref))
    observed = tuple((loss_label(turn, len(losses)), loss) for turn, loss in enumerate(losses) if isinstance(loss, Ref))
    if len(state) != len(next_state) or len(observed) != len(losses):
        raise UnsupportedError("the step gives a state or a loss that is not a tensor")
    return AtenGraph(tuple(recorder.inputs), tuple(recorder.nodes), state, observed)


def loss_label(turn: int, phases: int) -> str:
    """The observed name of the loss of a phase."""
    return "loss" if phases == 1 else f"loss.{turn}"


def gradient_labels(updated: Sequence[Sequence[str]]) -> list[str]:
    """A name for the gradient of each parameter in each phase: its own, if no earlier phase updates it."""
    found: list[str] = []
    for turn, names in enumerate(updated):
        found += [f"{name}.phase{turn}" if name in found else name for name in names]
    return found
