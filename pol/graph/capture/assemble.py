"""Captures a training step as a program: model, loss, optimizer, data set and order of batches in, StepProgram out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenInput, InputRole, Ref
from pol.graph.capture.guards.argument_checks import require_capturable, require_distances_of_state
from pol.graph.capture.guards.index_ranges import require_indices_in_range
from pol.graph.capture.guards.interval import I32_GREATEST, I32_LEAST
from pol.graph.capture.guards.number_ranges import require_integers_fit
from pol.graph.capture.loop import Loop
from pol.graph.capture.optimizers import Options
from pol.graph.capture.optimizers.optimizer_step import TABLE, OptimizerStep
from pol.graph.capture.tracing.aten_recorder import AtenRecorder, gradient_labels, graph_of, reported_type
from pol.graph.capture.tracing.random_operations import seed_words
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.trace import TraceFailureError, trace_step, without_collection
from pol.graph.capture.tracing.training_step import updated_names
from pol.graph.capture.training import Dataset, Losses, Optimizers, Training, named_tensors
from pol.graph.captured_step import Capture
from pol.graph.lowering import Lowering
from pol.graph.refusals import Report, refuse

OBSERVER: ContextVar[Callable[..., None] | None] = ContextVar("observer", default=None)
"""Called with the arguments of each capture before it begins; `pol capture --check` sets it."""


def capture(
    model: nn.Module,
    loss: Losses,
    optimizer: Optimizers,
    dataset: Dataset,
    order: Tensor,
    loop: Loop = Loop(),  # noqa: B008  # immutable
    seed: int = 0,
    check: bool = True,
) -> Capture:
    """Capture `optimizer.step()` on `loss(model(*inputs), target)` for the batches `dataset[order[step]]`.

    `dataset` holds tensors with one row per example, the target last, or names them: `loss(model(**inputs), target)`.
    A loss with one argument is that of the output, without a target; None is the loss that the model gives itself.
    With a sequence of losses and one of optimizers a step has phases, one after another on the same batch: forward and
    backward of `loss(model, *batch)`, then the step of its optimizer, or of each in a list.

    `order` is an int64 tensor of shape (steps, batch); `loop` says what else happens in a step; `seed` (64 bits)
    decides the random numbers of the forward pass. Model, optimizer and scheduler are not changed. Options of the
    optimizer (the learning rate, or its course) become part of the program. With `check`, two of the user's own eager
    steps are run beside the program's (docs/spec/program.md, "Self-check"). Raises UnsupportedError, with the user's
    line, for what has no definition, and where the program would be another training.
    """
    return capture_course(model, loss, optimizer, dataset, order, loop, seed, check)


@dataclass(frozen=True)
class Course:
    """Steps that are given their batches one by one: ``first`` is the next one.

    ``options`` are those of each optimizer's groups at each step (`Loop.options`).
    """

    options: Sequence[Sequence[Sequence[Options]]]
    first: int = 0


def capture_course(
    model: nn.Module,
    loss: Losses,
    optimizer: Optimizers,
    dataset: Dataset,
    order: Tensor,
    loop: Loop,
    seed: int,
    check: bool,
    course: Course | None = None,
) -> Capture:
    """As `capture`. With a ``course``, each step takes the one row of the order, and the data set is its batch."""
    observe = OBSERVER.get()
    if observe is not None:
        observe(model, loss, optimizer, dataset, order, loop, seed)
    training = Training.of(model, loss, optimizer, dataset, loop)
    require_capturable(training, dataset, order)
    first = 0 if course is None else course.first
    options = [loop.options(own, len(order)) for own in training.optimizers] if course is None else course.options
    plans = optimizer_steps(training, options, first, may_count=course is None)
    inputs = step_inputs(training, plans, named_tensors(dataset), order, seed, course is not None, first)
    try:
        recorded = record_step(training, plans, inputs)
    except TraceFailureError as error:
        raise explained(error, training, options, inputs) from error
    aten, found = recorded.aten, recorded.gradients
    tensors = [*(tensor for _, tensor in inputs.constants()), *recorded.constants]
    named = {entry.name: tensor for entry, tensor in zip(aten.constants, tensors, strict=True)}
    require_indices_in_range(aten, named)
    steps = len(options[0]) - first
    require_integers_fit(aten, named, {name: tensor for name, _, tensor in inputs.slots()}, steps)
    with without_collection():
        lowering = Lowering(aten)
        program, names = lowering.program(aten.next_state, aten.observed)
    constants = [to_words(entry.name, tensor) for entry, tensor in zip(aten.constants, tensors, strict=True)]
    state = [to_words(entry.name, tensor) for entry, (_, _, tensor) in zip(aten.slots, inputs.slots(), strict=True)]
    require_distances_of_state(program, names.slots, state)
    if check:
        from pol.execution.self_check.capture_check import SelfCheck
        from pol.execution.self_check.eager_step import EagerStep

        own = EagerStep(training, options, inputs)
        SelfCheck(own, lowering, found, program, names, state, constants).require_same()
    return Capture(aten, program, names, constants, state)


def optimizer_steps(
    training: Training, options: Sequence[Sequence[Sequence[Options]]], first: int = 0, may_count: bool = True
) -> list[OptimizerStep]:
    """The update of each optimizer; ``options`` are those of each at each step, the rest as for `OptimizerStep`.

    Raises:
        UnsupportedError: an optimizer that has no definition.
    """
    parameters = dict(training.model.named_parameters())
    alone = len(training.optimizers) == 1
    return [
        OptimizerStep(
            own,
            parameters,
            course,
            first,
            len(training.turns(place)),
            TABLE if alone else f"{TABLE}.{place}",
            may_count,
        )
        for place, (own, course) in enumerate(zip(training.optimizers, options, strict=True))
    ]


def step_inputs(
    training: Training,
    plans: Sequence[OptimizerStep],
    dataset: Mapping[str, Tensor],
    order: Tensor,
    seed: int,
    same_rows: bool = False,
    first: int = 0,
) -> StepInputs:
    """The tensors of the first step."""
    model, states = training.model, [plan.initial for plan in plans]
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    averaged = updated_names(states, parameters) if training.loop.ema is not None else []
    return StepInputs(
        parameters,
        # Complex buffers, such as the turns of rotary embeddings, are constants of the program.
        {name: buffer.detach() for name, buffer in model.named_buffers() if not buffer.is_complex()},
        {name: parameters[name].detach() for name in averaged},  # a trace tells inputs apart by their objects
        states,
        {name: tensor.detach() for name, tensor in dataset.items()},
        order.detach(),
        {name: table for plan in plans for name, table in plan.tables.items()},
        seed_words(seed),
        same_rows,
        first,
    )


@dataclass(frozen=True)
class RecordedStep:
    """A step as a graph, the tensors that the user's code closed over, and the gradient of each parameter."""

    aten: AtenGraph
    constants: list[Tensor]
    gradients: Mapping[str, Ref]


def record_step(
    training: Training, plans: Sequence[OptimizerStep], inputs: StepInputs, report: Report = refuse
) -> RecordedStep:
    """Trace and record one step; the user's objects are restored. A report that returns lets operations be refused."""
    entries = _entries(inputs, plans, report)
    traced = trace_step(training, plans, inputs, report)
    recorder = AtenRecorder(entries, inputs.seed, report)
    outputs = recorder.record(traced.graph)
    slots = [entry.name for entry in entries if entry.role is InputRole.STATE]
    phases = len(training.phases)
    next_state, losses = outputs[: len(slots)], outputs[len(slots) : len(slots) + phases]
    gradients = zip(gradient_labels(traced.updated), outputs[len(slots) + phases :], strict=True)
    found = {name: gradient for name, gradient in gradients if isinstance(gradient, Ref)}
    kinds = {}
    for place, (states, optimizer) in enumerate(zip(inputs.optimizers, training.optimizers, strict=True)):
        for name, state in states.items():
            slots_of_name = [name, *(inputs.slot(place, name, key) for key in state)]
            kinds.update(dict.fromkeys(slots_of_name, type(optimizer).__name__))
    recorder.name(
        found,
        {name: item for name, item in zip(slots, next_state, strict=True) if isinstance(item, Ref)},
        kinds,
        ", ".join(type(optimizer).__name__ for optimizer in training.optimizers),
    )
    return RecordedStep(graph_of(recorder, next_state, losses), recorder.constants, found)


def explained(
    error: TraceFailureError, training: Training, options: Sequence[Sequence[Sequence[Options]]], inputs: StepInputs
) -> UnsupportedError:
    """The failure of a trace, if the user's own step fails too; else what to do about code that can't be followed."""
    from pol.execution.self_check.eager_step import EagerStep

    try:
        with EagerStep(training, options, inputs).run_on_objects() as own:
            own.run(inputs.order[0], inputs.first)
    except UnsupportedError:
        return error
    return UnsupportedError(
        f"{error.place} -- your step runs, but a capture can't follow it ({error.cause}): write this line with the "
        "operations listed in docs/operations.md"
    )


def to_words(what: str, tensor: Tensor) -> Words:
    """The words of a tensor, of its shape; UnsupportedError if an integer does not fit in an i32."""
    tensor = tensor.detach().cpu().contiguous()
    array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    if array.dtype == np.float32:
        return np.array(array).view(np.uint32)
    if array.size and not I32_LEAST <= int(array.min()) <= int(array.max()) <= I32_GREATEST:
        raise UnsupportedError(f"{what} holds integers that do not fit in 32 bits; renumber them")
    return np.array(array, np.int32).view(np.uint32)


def _entries(inputs: StepInputs, plans: Sequence[OptimizerStep], report: Report) -> list[AtenInput]:
    # Types without words are reported with the arguments.
    type_of = partial(reported_type, report=refuse if report is refuse else lambda _: None)
    scales = {
        inputs.slot(place, name, key): plan.scale(key)
        for place, plan in enumerate(plans)
        for name, state in plan.initial.items()
        for key in state
    }
    state = [
        AtenInput(InputRole.STATE, name, type_of(name, tensor), component, scales.get(name, 0))
        for name, component, tensor in inputs.slots()
    ]
    return [
        *state,
        *(AtenInput(InputRole.CONSTANT, name, type_of(name, tensor)) for name, tensor in inputs.constants()),
        AtenInput(InputRole.STEP, "step", type_of("step", torch.zeros((), dtype=torch.int64))),
    ]
