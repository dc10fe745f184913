"""Captures a training step as a program: model, loss, optimizer, data set and order of batches in, StepProgram out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenInput, InputRole, Ref
from pol.graph.capture.guards.argument_checks import require_capturable, require_distances_of_state
from pol.graph.capture.guards.index_ranges import require_indices_in_range
from pol.graph.capture.guards.interval import I32_GREATEST, I32_LEAST
from pol.graph.capture.guards.number_ranges import require_integers_fit
from pol.graph.capture.loop import Loop
from pol.graph.capture.optimizers import Options
from pol.graph.capture.optimizers.optimizer_step import OptimizerStep
from pol.graph.capture.tracing.aten_recorder import AtenRecorder, graph_of, tensor_type
from pol.graph.capture.tracing.random_operations import seed_words
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.trace import trace_step
from pol.graph.captured_step import Capture
from pol.graph.lowering import lower
from pol.graph.step_program import Component


def capture(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    dataset: Sequence[Tensor],
    order: Tensor,
    loop: Loop = Loop(),  # noqa: B008  # immutable
    seed: int = 0,
    check: bool = True,
) -> Capture:
    """Capture `optimizer.step()` on `loss(model(*inputs), target)` for the batches `dataset[order[step]]`.

    `dataset` holds tensors with one row per example, the target last; `order` is an int64 tensor of shape
    (steps, batch); `loop` says what else happens in a step; `seed` (64 bits) decides the random numbers of the forward
    pass. Model, optimizer and scheduler are not changed. Options of the optimizer (the learning rate, or its course)
    become part of the program. With `check`, two of the user's own eager steps are run beside the program's
    (docs/spec/program.md, "Self-check"). Raises UnsupportedError, with the user's line, for what has no definition, and
    where the program would be another training.
    """
    return capture_course(model, loss, optimizer, dataset, order, loop, seed, check)


@dataclass(frozen=True)
class Course:
    """Steps that are given their batches one by one: ``first`` is the next one.

    ``options`` are those of each group of the optimizer at each step (`Loop.options`).
    """

    options: Sequence[Sequence[Options]]
    first: int = 0


def capture_course(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    dataset: Sequence[Tensor],
    order: Tensor,
    loop: Loop,
    seed: int,
    check: bool,
    course: Course | None = None,
) -> Capture:
    """As `capture`. With a ``course``, each step takes the one row of the order, and the data set is its batch.

    Raises:
        UnsupportedError: as `capture`.
    """
    require_capturable(model, loss, optimizer, dataset, order, loop)
    parameters = dict(model.named_parameters())
    first = 0 if course is None else course.first
    options = loop.options(optimizer, len(order)) if course is None else course.options
    plan = OptimizerStep(optimizer, parameters, options, first)
    inputs = StepInputs(
        {name: parameter.detach() for name, parameter in parameters.items()},
        # Complex buffers, such as the turns of rotary embeddings, are constants of the program.
        {name: buffer.detach() for name, buffer in model.named_buffers() if not buffer.is_complex()},
        {name: parameters[name].detach() for name in plan.initial} if loop.ema is not None else {},
        plan.initial,
        [tensor.detach() for tensor in dataset],
        order.detach(),
        plan.tables,
        seed_words(seed),
        same_rows=course is not None,
        first=first,
    )
    recorded = record_step(model, loss, optimizer, plan, loop, inputs)
    aten, found = recorded.aten, recorded.gradients
    tensors = [*(tensor for _, tensor in inputs.constants()), *recorded.constants]
    named = {entry.name: tensor for entry, tensor in zip(aten.constants, tensors, strict=True)}
    require_indices_in_range(aten, named)
    require_integers_fit(aten, named, {name: tensor for name, _, tensor in inputs.slots()}, len(options) - first)
    program, names = lower(aten)
    constants = [to_words(entry.name, tensor) for entry, tensor in zip(aten.constants, tensors, strict=True)]
    state = [to_words(entry.name, tensor) for entry, (_, _, tensor) in zip(aten.slots, inputs.slots(), strict=True)]
    require_distances_of_state(program, names.slots, state)
    if check:
        from pol.execution.self_check.capture_check import SelfCheck
        from pol.execution.self_check.eager_step import EagerStep

        own = EagerStep(model, loss, optimizer, loop, options, inputs)
        SelfCheck(own, aten, found, program, names, state, constants).require_same()
    return Capture(aten, program, names, constants, state)


@dataclass(frozen=True)
class RecordedStep:
    """A step as a graph, the tensors that the user's code closed over, and the gradient of each parameter."""

    aten: AtenGraph
    constants: list[Tensor]
    gradients: Mapping[str, Ref]


def record_step(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    plan: OptimizerStep,
    loop: Loop,
    inputs: StepInputs,
) -> RecordedStep:
    """Trace and record one step; the user's objects are restored.

    Raises:
        UnsupportedError: as `capture`.
    """
    entries = _entries(inputs, plan)
    traced = trace_step(model, loss, optimizer, plan, loop, inputs)
    recorder = AtenRecorder(entries, inputs.seed)
    outputs = recorder.record(traced.graph)
    slots = [entry.name for entry in entries if entry.role is InputRole.STATE]
    next_state, value, gradients = outputs[: len(slots)], outputs[len(slots)], outputs[len(slots) + 1 :]
    found = {name: g for name, g in zip(traced.updated, gradients, strict=True) if isinstance(g, Ref)}
    recorder.name(
        found,
        {name: item for name, item in zip(slots, next_state, strict=True) if isinstance(item, Ref)},
        type(optimizer).__name__,
    )
    return RecordedStep(graph_of(recorder, next_state, value), recorder.constants, found)


def to_words(what: str, tensor: Tensor) -> Words:
    """The words of a tensor, of its shape; UnsupportedError if an integer does not fit in an i32."""
    tensor = tensor.detach().cpu().contiguous()
    array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    if array.dtype == np.float32:
        return np.array(array).view(np.uint32)
    if array.size and not I32_LEAST <= int(array.min()) <= int(array.max()) <= I32_GREATEST:
        raise UnsupportedError(f"{what} holds integers that do not fit in 32 bits; renumber them")
    return np.array(array, np.int32).view(np.uint32)


def _entries(inputs: StepInputs, plan: OptimizerStep) -> list[AtenInput]:
    state = [
        AtenInput(
            InputRole.STATE,
            name,
            tensor_type(name, tensor),
            component,
            plan.scale(name) if component is Component.OPTIMIZER else 0,
        )
        for name, component, tensor in inputs.slots()
    ]
    return [
        *state,
        *(AtenInput(InputRole.CONSTANT, name, tensor_type(name, tensor)) for name, tensor in inputs.constants()),
        AtenInput(InputRole.STEP, "step", tensor_type("step", torch.zeros((), dtype=torch.int64))),
    ]
