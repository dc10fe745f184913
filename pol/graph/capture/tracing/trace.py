"""Traces one optimizer step of ordinary PyTorch code into a flat functional graph of ATen operations."""

from __future__ import annotations

import gc
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch._functorch.utils as applied
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    UnsupportedOperatorException,
)
from torch.distributions import Distribution
from torch.fx import GraphModule
from torch.fx import traceback as fx_traceback
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.fx.graph import CodeGen
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import checkpoint
from torch.utils._pytree import tree_leaves

from pol.errors import PolError, UnsupportedError
from pol.graph.capture.guards.mutation_guard import mutation_guard
from pol.graph.capture.guards.purity import require_batch_kept, require_pure, unstable
from pol.graph.capture.optimizers.optimizer_step import OptimizerStep
from pol.graph.capture.replacements.selections import has_selected_rows
from pol.graph.capture.tracing.aten_recorder import data_dependent
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.functionalization import FunctionalReplay
from pol.graph.capture.tracing.number_stand_ins import NumberStandIns
from pol.graph.capture.tracing.provenance import PHASE, SOURCE, current_line, line_of_error
from pol.graph.capture.tracing.second_run import SecondRun
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.training_step import TrainingStep, updated_names
from pol.graph.capture.training import Training, uncompiled
from pol.graph.lowering.advice import undefined
from pol.graph.refusals import Report, refuse


class _OtherKind:
    """Stands in for torch's CheckpointFunction."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve: bool, *inputs: Any) -> Any:
        """The function's result, recomputed in the backward pass without reentrance."""
        if not any(isinstance(item, Tensor) and item.requires_grad for item in inputs):
            with torch.no_grad():
                return function(*inputs)
        return checkpoint.checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=preserve)


_CACHES = (checkpoint._CachingTorchDispatchMode, checkpoint._CachedTorchDispatchMode)
"""The contexts of `create_selective_checkpoint_contexts`."""
_OWN_GENERATOR = checkpoint._checkpoint_without_reentrant_generator


def _generator(function: Any, preserve: bool, contexts: Callable[[], Any], *rest: Any, **named: Any) -> Any:
    if contexts is not checkpoint.noop_context_fn and all(type(item) in _CACHES for item in contexts()):
        contexts = checkpoint.noop_context_fn
    return _OWN_GENERATOR(function, preserve, contexts, *rest, **named)


@contextmanager
def recomputation() -> Iterator[None]:
    """While active, checkpoints are of the kind that a trace follows: for all threads, as torch's module is one."""
    own = checkpoint.CheckpointFunction
    checkpoint.CheckpointFunction = _OtherKind  # type: ignore[misc, assignment]  # its one method that is called
    checkpoint._checkpoint_without_reentrant_generator = _generator  # type: ignore[assignment]  # called by position
    try:
        yield
    finally:
        checkpoint.CheckpointFunction = own  # type: ignore[misc]  # as before
        checkpoint._checkpoint_without_reentrant_generator = _OWN_GENERATOR


_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
SAID = 240
"""Characters of an exception that a message shows."""
_NEEDS_NUMBERS = (
    "is not supported for tensor subclasses",
    "Cannot access data pointer",
    "data pointer is not allocated",
)
"""Messages of torch where code reads the numbers of a traced tensor: .numpy(), .tolist(), numpy.asarray."""


_HIGHER_ORDER = re.compile(r"HigherOrderOperator (\w+)|FlexAttention")
"""In messages about control flow and programs that are arguments."""


class TraceFailureError(UnsupportedError):
    """The step raises an exception under a trace; `place` is the user's line, `cause` the exception in a few words."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"{place} -- the step fails with {cause}. Capture needs a step that runs: first run your own loop for one "
            "batch of `dataset[order[0]]`"
        )
        self.place, self.cause = place, cause


@dataclass(frozen=True)
class TracedStep:
    """A functional graph; placeholders in the order of StepInputs and the step number last.

    Its outputs are those of TrainingStep.
    """

    graph: GraphModule
    updated: Sequence[Sequence[str]]
    """The parameters that each phase updates."""


def trace_step(
    training: Training, plans: Sequence[OptimizerStep], inputs: StepInputs, report: Report = refuse
) -> TracedStep:
    """The step as a graph; the user's objects are restored.

    With a report that returns, code that depends on numbers of tensors goes on with stand-ins. Raises UnsupportedError,
    with the user's line, where the code has no graph.
    """
    model = training.model
    state = (*model.named_parameters(), *model.named_buffers())
    own = {f"model.{name}": tensor for name, tensor in state if not tensor.is_complex()}
    step = TrainingStep(training, plans, list(inputs.dataset), inputs.seed, inputs.same_rows)
    lines = step.lines
    arguments = inputs.arguments()
    stand_ins, again_stand_ins = (
        nullcontext() if report is refuse else NumberStandIns(lines.running, told) for told in (report, lambda _: None)
    )
    with (
        quiet(),
        without_collection(),
        without_validation(),
        fx_traceback.preserve_node_meta(),
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.mkldnn.flags(enabled=False),
        # A scripted function would become another one when it has run twice.
        torch.jit.optimized_execution(False),  # type: ignore[attr-defined]  # torch exports it by hand
        torch.enable_grad(),
        recomputation(),
        custom_functions(),
        uncompiled(),
        mutation_guard({**own, **training.roots()}) as before,
    ):
        with stand_ins:
            first = traced(step, arguments, None, lines.place)
        require_pure(first, before, own, training.optimizers, report)
        if inputs.same_rows:  # the batch is of the user's own tensors; otherwise its rows are copies
            require_batch_kept(first, report)
        before.require_unchanged(True, report)
        before.settle()
        again = SecondRun(first)
        try:
            with again_stand_ins:
                traced(again.of(step), arguments, None, lines.place)
        except TraceFailureError as error:  # the first run did not fail
            raise unstable(before.made) from error
        before.require_unchanged(False, report)
        if not again.is_same:
            report(unstable(before.made))
        _assign_sources(first)
        first.graph.set_codegen(CodeGen())
        second = without_writes(first, tree_leaves(arguments), decompositions(), lines.place)
    members = [[inputs.optimizers[place] for place in phase.optimizers] for phase in training.phases]
    return TracedStep(second, [updated_names(states, inputs.parameters) for states in members])


@contextmanager
def quiet() -> Iterator[None]:
    """Tracing internals warn about their own deprecated parts and log errors that also come as exceptions."""
    # The handler of torch.__trace goes at its first record, unless TORCH_TRACE is set; until then all records are made.
    known = [name for name in logging.root.manager.loggerDict if name != "torch.__trace"]
    names = [name for name in known if name.partition(".")[0] == "torch"]
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
def without_collection() -> Iterator[None]:
    """Garbage in cycles is left until later: looking for it takes a fifth of the time of code that makes many objects.

    For code that holds no large tensors in cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
        with _use_lazy_graph_module(True):  # the graph is read, not run: its Python code is never needed
            graph = maker(*arguments)
    except PolError:
        raise
    except Exception as error:
        raise _refusal(error, line_of_error(error.__traceback__) or running()) from error
    if not isinstance(graph, GraphModule):
        raise AssertionError("make_fx gave no graph")
    return graph


def without_writes(
    first: GraphModule,
    arguments: Sequence[Tensor],
    table: Mapping[Any, Callable[..., Any]],
    running: Callable[[], str],
    results: Callable[[list[Any]], list[Any]] = list,
) -> GraphModule:
    """The graph as one without writes, with the replacements of a table; ``results`` are of its outputs.

    The last ``arguments`` are those of the graph.
    """
    places = [node for node in first.graph.nodes if node.op == "placeholder"]
    replay = FunctionalReplay(first, table)

    def run(*tensors: Tensor) -> Any:
        return results(replay.run(*tensors[len(tensors) - len(places) :]))

    graph = traced(torch.func.functionalize(run), arguments, table, running)
    graph.graph.eliminate_dead_code()
    return graph


def _refusal(error: Exception, line: str) -> UnsupportedError:
    """The error for an exception of the user's code under the trace."""
    if isinstance(error, UnsupportedOperatorException):
        return undefined(line, str(error.func))
    text = first_line(error)
    if (higher := _HIGHER_ORDER.search(str(error))) is not None:
        return undefined(line, higher[1] or "flex_attention")
    if isinstance(error, FakeTensorDeviceMismatchError) or "expected device meta" in text:
        return UnsupportedError(
            f"{line} -- torch can't trace derivatives forward of derivatives backward (hessian, jacfwd of jacrev): "
            "write jacrev(jacrev(f)), or torch.autograd.grad(..., create_graph=True)"
        )
    if isinstance(error, _DATA_DEPENDENT) or any(part in text for part in _NEEDS_NUMBERS):
        return data_dependent(line, type(error).__name__ if isinstance(error, _DATA_DEPENDENT) else text)
    return TraceFailureError(line, f"{type(error).__name__}: {text}")


def first_line(error: Exception) -> str:
    """What an exception says, in one short line."""
    text = str(error).strip().partition("\n")[0].rstrip(".")
    return text if len(text) <= SAID else text[: SAID - 3] + "..."


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


@contextmanager
def custom_functions() -> Iterator[None]:
    """While active, `torch.autograd.Function.apply` takes no selected rows: for all threads, as torch's module is one.

    Torch's engine would lose their gradient. A user may keep `apply` in a name of his own, so it is caught at the
    function through which it takes arguments.
    """
    own: Callable[..., Any] = applied.unwrap_dead_wrappers

    def arguments(args: tuple[Any, ...]) -> Any:
        if has_selected_rows(args):
            raise UnsupportedError(
                f"{current_line() or 'the step'} -- a torch.autograd.Function takes rows that a mask has selected, "
                "whose number depends on data: apply it to all rows, and select of its result"
            )
        return own(args)

    applied.unwrap_dead_wrappers = arguments
    try:
        yield
    finally:
        applied.unwrap_dead_wrappers = own
