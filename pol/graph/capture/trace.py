"""Traces one optimizer step of ordinary PyTorch code into a flat functional graph of ATen operations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._decomp import get_decompositions
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks_from_tensors
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx import GraphModule, Interpreter
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.fx.graph import CodeGen
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Optimizer
from torch.utils._pytree import tree_flatten

from pol.errors import UnsupportedError
from pol.graph.capture.optimizer_state import State, traced_step
from pol.graph.capture.provenance import PHASE, ROLE, SOURCE, LineRecorder, line_of_error
from pol.graph.capture.record import data_dependent

DECOMPOSED = (
    "t", "rsub", "addcmul", "addcdiv", "lerp", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
    "new_full", "fill", "mse_loss", "mse_loss_backward", "l1_loss", "smooth_l1_loss", "smooth_l1_loss_backward",
    "huber_loss", "huber_loss_backward", "leaky_relu", "leaky_relu_backward", "silu", "silu_backward", "softplus",
    "softplus_backward", "hardtanh", "hardtanh_backward", "elu", "elu_backward", "baddbmm", "addmv", "mv", "dot",
    "binary_cross_entropy", "binary_cross_entropy_backward", "native_dropout_backward", "stack", "unbind", "square",
    "select_backward", "slice_backward", "masked_fill", "xlogy", "log_sigmoid_forward", "log_sigmoid_backward",
)  # fmt: skip
"""ATen operations that are replaced by torch's own decomposition. The list is part of what pol is: it is frozen."""

_DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
    UnsupportedOperatorException,
)


@dataclass(frozen=True)
class StepInputs:
    """The tensors that one step depends on, by name; all lie outside any autograd graph."""

    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    optimizer: Mapping[str, State]
    dataset: Sequence[Tensor]
    order: Tensor


@dataclass(frozen=True)
class TracedStep:
    """A functional graph; placeholders in the order of StepInputs and the step number last.

    Its outputs are next parameters, next buffers, next optimizer state, the loss, and a gradient per updated parameter.
    """

    graph: GraphModule
    updated: Sequence[str]


def trace_step(
    model: nn.Module, loss: Callable[[Any, Any], Tensor], optimizer: Optimizer, inputs: StepInputs
) -> TracedStep:
    """The step as a graph; UnsupportedError where the user's code cannot be one."""
    identity = {name: id(parameter) for name, parameter in model.named_parameters()}
    updated = list(inputs.optimizer)

    def step(
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        states: dict[str, State],
        dataset: Sequence[Tensor],
        order: Tensor,
        number: Tensor,
    ) -> Any:
        batch = _batch(dataset, order, number)
        recorder = LineRecorder(model, loss)
        with fx_traceback.annotate({PHASE: "forward"}):
            leaves = {name: p.detach().requires_grad_(name in states) for name, p in parameters.items()}
            current = {name: buffer.clone() for name, buffer in buffers.items()}
            with recorder, recorder.modules():
                output = torch.func.functional_call(model, {**leaves, **current}, tuple(batch[:-1]))
                value = loss(output, batch[-1])
        if not _is_loss(value):
            raise UnsupportedError("the loss function must return one float32 number; use reduction='mean' or .sum()")
        if not value.requires_grad:
            raise UnsupportedError("the loss does not depend on any parameter that the optimizer updates")
        setup_stacktrace_preservation_hooks_from_tensors([value])
        with fx_traceback.annotate({PHASE: "backward"}):
            found = torch.autograd.grad(value.reshape(()), [leaves[name] for name in updated], allow_unused=True)
        # torch's annotation leaves out that `allow_unused` gives None.
        pairs: list[tuple[str, Tensor | None]] = list(zip(updated, found, strict=True))
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        with fx_traceback.annotate({PHASE: "update"}):
            after = traced_step(
                optimizer,
                {identity[name]: leaf for name, leaf in leaves.items()},
                {identity[name]: gradient for name, gradient in gradients.items()},
                {identity[name]: dict(state) for name, state in states.items()},
            )
        next_states = {name: after.get(identity[name], states[name]) for name in updated}
        return (
            [leaf.detach() for leaf in leaves.values()],
            list(current.values()),
            [next_states[name][key] for name in updated for key in states[name]],
            value.detach().reshape(()),
            [gradients.get(name) for name in updated],
        )

    arguments = (
        dict(inputs.parameters),
        dict(inputs.buffers),
        {name: dict(state) for name, state in inputs.optimizer.items()},
        list(inputs.dataset),
        inputs.order,
        torch.zeros((), dtype=torch.int64),
    )
    with warnings.catch_warnings(), fx_traceback.preserve_node_meta(), sdpa_kernel(SDPBackend.MATH):
        # Tracing internals warn about their own deprecated parts; nothing in there is the user's to mend.
        warnings.simplefilter("ignore")
        first = _traced(step, arguments, None)
        _settle_sources(first)
        first.graph.set_codegen(CodeGen())
        flat = tree_flatten(arguments)[0]

        def replay(*tensors: Tensor) -> Any:
            # Copies, so that updates in place stay inside the graph and become ordinary values.
            return Interpreter(first).run(*(tensor.clone() for tensor in tensors))

        table = get_decompositions([getattr(torch.ops.aten, name) for name in DECOMPOSED])
        second = _traced(torch.func.functionalize(replay), flat, table)
    second.graph.eliminate_dead_code()
    return TracedStep(second, updated)


def _is_loss(value: object) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1 and value.dtype == torch.float32


def _batch(dataset: Sequence[Tensor], order: Tensor, number: Tensor) -> list[Tensor]:
    with fx_traceback.annotate({PHASE: "batch", SOURCE: "batch = dataset[order[step]]"}):
        with fx_traceback.annotate({ROLE: "batch.rows"}):
            rows = order.index_select(0, number.reshape(1)).reshape(order.shape[1])
        batch = []
        for index, tensor in enumerate(dataset):
            with fx_traceback.annotate({ROLE: f"batch.{index}"}):
                batch.append(tensor.index_select(0, rows))
        return batch


def _traced(function: Callable[..., Any], arguments: Sequence[Any], table: Any) -> GraphModule:
    maker = make_fx(
        function, decomposition_table=table, tracing_mode="fake", _allow_non_fake_inputs=True, record_module_stack=False
    )
    try:
        graph = maker(*arguments)
    except _DATA_DEPENDENT as error:
        line = line_of_error(error.__traceback__) or "the model or the loss function"
        raise data_dependent(line, type(error).__name__) from error
    if not isinstance(graph, GraphModule):
        raise AssertionError("make_fx gave no graph")
    return graph


def _settle_sources(graph: GraphModule) -> None:
    """Final marks of the first trace: a backward node has the line of the forward node that it belongs to."""
    lines: dict[int, str] = {}
    for node in list(graph.graph.nodes):
        if "profiler" in str(node.target):
            continue
        mark = dict(node.meta.get("custom") or {})
        number = node.meta.get("seq_nr", -1)
        if mark.get(PHASE) == "forward" and SOURCE in mark:
            lines.setdefault(number, mark[SOURCE])
        elif mark.get(PHASE) == "backward":
            mark[SOURCE] = lines.get(number, "backward: sum of gradients")
        node.meta["custom"] = mark
    for node in reversed(list(graph.graph.nodes)):
        if "profiler" in str(node.target):
            graph.graph.erase_node(node)
    graph.recompile()
