"""Traces one optimizer step of ordinary PyTorch code into a flat functional graph of ATen operations."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from pol.errors import PolError, UnsupportedError
from pol.graph.capture.optimizer_state import State, traced_step
from pol.graph.capture.provenance import PHASE, ROLE, SOURCE, LineRecorder, line_of_error
from pol.graph.capture.purity import require_equal, require_pure
from pol.graph.capture.record import data_dependent
from pol.graph.capture.untouched import untouched
from pol.graph.lowering.advice import DECOMPOSED, undefined

_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
_NEEDS_NUMBERS = (
    "is not supported for tensor subclasses",
    "Cannot access data pointer",
    "data pointer is not allocated",
)
"""What torch says where code asks a tensor that is being traced for its numbers: .numpy(), .tolist(), numpy.asarray."""


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


class _TrainingStep(nn.Module):
    """Model and loss as one module, so that a loss that reads the model reads the traced parameters too."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, inputs: Sequence[Tensor], target: Tensor) -> Any:
        """What the loss function gives."""
        return self.loss(self.model(*inputs), target)


def trace_step(
    model: nn.Module, loss: Callable[[Any, Any], Tensor], optimizer: Optimizer, inputs: StepInputs
) -> TracedStep:
    """The step as a graph; UnsupportedError where the user's code cannot be one. Leaves everything as it was."""
    identity = {name: id(parameter) for name, parameter in model.named_parameters()}
    own = {f"model.{name}": tensor for name, tensor in (*model.named_parameters(), *model.named_buffers())}
    updated = list(inputs.optimizer)
    module = _TrainingStep(model, loss)
    lines = LineRecorder(model, loss)

    def step(
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        states: dict[str, State],
        dataset: Sequence[Tensor],
        order: Tensor,
        number: Tensor,
    ) -> Any:
        batch = _batch(dataset, order, number)
        with fx_traceback.annotate({PHASE: "forward"}):
            leaves = {name: p.detach().requires_grad_(name in states) for name, p in parameters.items()}
            # functional_call writes buffers that the model has assigned to back into this dictionary.
            current = {f"model.{name}": buffer.clone() for name, buffer in buffers.items()}
            current |= {f"model.{name}": leaf for name, leaf in leaves.items()}
            with lines, lines.modules(module):
                value = torch.func.functional_call(module, current, (batch[:-1], batch[-1]))
        if any(current[f"model.{name}"] is not leaf for name, leaf in leaves.items()):
            raise UnsupportedError("the model replaces one of its parameters during the step; only the optimizer may")
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
            [current[f"model.{name}"].detach() for name in buffers],
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
    with (
        _quiet(),
        fx_traceback.preserve_node_meta(),
        sdpa_kernel(SDPBackend.MATH),
        torch.enable_grad(),
        untouched({**own, "model": model, "loss": loss, "optimizer": optimizer}) as before,
    ):
        first = _traced(step, arguments, None, lines)
        require_pure(first, before, own)
        before.require_unchanged(first_run=True)
        before.settle()
        again = _traced(step, arguments, None, lines)
        before.require_unchanged(first_run=False)
        require_equal(first, again)
        _settle_sources(first)
        first.graph.set_codegen(CodeGen())
        flat = tree_flatten(arguments)[0]

        def replay(*tensors: Tensor) -> Any:
            # Copies, so that updates in place stay inside the graph and become ordinary values.
            return Interpreter(first).run(*(tensor.clone() for tensor in tensors))

        table = get_decompositions([getattr(torch.ops.aten, name) for name in DECOMPOSED])
        second = _traced(torch.func.functionalize(replay), flat, table, lines)
    second.graph.eliminate_dead_code()
    return TracedStep(second, updated)


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing internals warn about their own deprecated parts and log errors that also come as exceptions."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    loggers = [logging.getLogger(name) for name in names]
    disabled = [logger.disabled for logger in loggers]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for logger in loggers:
                logger.disabled = True
            yield
    finally:
        for logger, was in zip(loggers, disabled, strict=True):
            logger.disabled = was


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


def _traced(function: Callable[..., Any], arguments: Sequence[Any], table: Any, lines: LineRecorder) -> GraphModule:
    maker = make_fx(
        function, decomposition_table=table, tracing_mode="fake", _allow_non_fake_inputs=True, record_module_stack=False
    )
    try:
        graph = maker(*arguments)
    except PolError:
        raise
    except Exception as error:
        raise _refusal(error, line_of_error(error.__traceback__) or lines.running()) from error
    if not isinstance(graph, GraphModule):
        raise AssertionError("make_fx gave no graph")
    return graph


def _refusal(error: Exception, line: str) -> UnsupportedError:
    """What an exception of the user's code under the trace means for the user."""
    if isinstance(error, UnsupportedOperatorException):
        return undefined(line, str(error.func))
    text = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, _DATA_DEPENDENT) or any(part in text for part in _NEEDS_NUMBERS):
        return data_dependent(line, type(error).__name__ if isinstance(error, _DATA_DEPENDENT) else text)
    return UnsupportedError(
        f"{line} -- the step fails with {type(error).__name__}: {text}. Capture needs a step that runs: first run your "
        "own loop for one batch of `dataset[order[0]]`"
    )


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
