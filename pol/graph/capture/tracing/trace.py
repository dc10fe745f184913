"""Traces one optimizer step of ordinary PyTorch code into a flat functional graph of ATen operations."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.distributions import Distribution
from torch.fx import GraphModule
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.fx.graph import CodeGen
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Optimizer
from torch.utils._pytree import tree_flatten

from pol.errors import PolError, UnsupportedError
from pol.graph.capture.guards.mutation_guard import mutation_guard
from pol.graph.capture.guards.purity import require_batch_kept, require_equal, require_pure
from pol.graph.capture.loop import Loop
from pol.graph.capture.optimizers.optimizer_step import OptimizerStep
from pol.graph.capture.tracing.aten_recorder import data_dependent
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.functionalization import FunctionalReplay
from pol.graph.capture.tracing.provenance import PHASE, SOURCE, line_of_error
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.training_step import TrainingStep
from pol.graph.lowering.advice import undefined

_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
_NEEDS_NUMBERS = (
    "is not supported for tensor subclasses",
    "Cannot access data pointer",
    "data pointer is not allocated",
)
"""Messages of torch where code reads the numbers of a traced tensor: .numpy(), .tolist(), numpy.asarray."""


@dataclass(frozen=True)
class TracedStep:
    """A functional graph; placeholders in the order of StepInputs and the step number last.

    Its outputs are those of TrainingStep.
    """

    graph: GraphModule
    updated: Sequence[str]


def trace_step(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    plan: OptimizerStep,
    loop: Loop,
    inputs: StepInputs,
) -> TracedStep:
    """The step as a graph; the user's objects are restored.

    Raises UnsupportedError, with the user's line, where the code has no graph.
    """
    state = (*model.named_parameters(), *model.named_buffers())
    own = {f"model.{name}": tensor for name, tensor in state if not tensor.is_complex()}
    step = TrainingStep(model, loss, plan, loop, inputs.seed, inputs.same_rows)
    lines = step.lines
    arguments = inputs.arguments()
    with (
        quiet(),
        without_validation(),
        fx_traceback.preserve_node_meta(),
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.mkldnn.flags(enabled=False),
        torch.enable_grad(),
        mutation_guard({**own, "model": model, "loss": loss, "optimizer": optimizer}) as before,
    ):
        first = traced(step, arguments, None, lines.place)
        require_pure(first, before, own, optimizer)
        if inputs.same_rows:  # the batch is of the user's own tensors; otherwise its rows are copies
            require_batch_kept(first)
        before.require_unchanged(first_run=True)
        before.settle()
        again = traced(step, arguments, None, lines.place)
        before.require_unchanged(first_run=False)
        require_equal(first, again)
        _assign_sources(first)
        first.graph.set_codegen(CodeGen())
        flat = tree_flatten(arguments)[0]

        functional = FunctionalReplay(first)

        def replay(*tensors: Tensor) -> Any:
            # Copies, so that updates in place stay inside the graph and become ordinary values.
            return functional.run(*(tensor.clone() for tensor in tensors))

        second = traced(torch.func.functionalize(replay), flat, decompositions(), lines.place)
    second.graph.eliminate_dead_code()
    return TracedStep(second, list(inputs.optimizer))


@contextmanager
def quiet() -> Iterator[None]:
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


@contextmanager
def without_validation() -> Iterator[None]:
    """torch.distributions checks the numbers of its arguments, which a trace doesn't know; the self-check does so."""
    was = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(was)


def traced(
    function: Callable[..., Any], arguments: Sequence[Any], table: Any, running: Callable[[], str]
) -> GraphModule:
    """The graph of a function; ``running`` names the running module where no line of the user is found."""
    maker = make_fx(
        function, decomposition_table=table, tracing_mode="fake", _allow_non_fake_inputs=True, record_module_stack=False
    )
    try:
        graph = maker(*arguments)
    except PolError:
        raise
    except Exception as error:
        raise _refusal(error, line_of_error(error.__traceback__) or running()) from error
    if not isinstance(graph, GraphModule):
        raise AssertionError("make_fx gave no graph")
    return graph


def _refusal(error: Exception, line: str) -> UnsupportedError:
    """The error for an exception of the user's code under the trace."""
    if isinstance(error, UnsupportedOperatorException):
        return undefined(line, str(error.func))
    text = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, _DATA_DEPENDENT) or any(part in text for part in _NEEDS_NUMBERS):
        return data_dependent(line, type(error).__name__ if isinstance(error, _DATA_DEPENDENT) else text)
    return UnsupportedError(
        f"{line} -- the step fails with {type(error).__name__}: {text}. Capture needs a step that runs: first run your "
        "own loop for one batch of `dataset[order[0]]`"
    )


def _assign_sources(graph: GraphModule) -> None:
    """Give every backward node of the first trace the line of its forward node, and drop profiler nodes."""
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
