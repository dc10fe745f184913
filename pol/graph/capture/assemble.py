"""From a model, a loss function, an optimizer, a data set and an order of batches to a step program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.graph.aten import AtenGraph, AtenInput, InputRole, Ref
from pol.graph.capture.index_ranges import require_indices_in_range
from pol.graph.capture.optimizer_state import initial_state, keys
from pol.graph.capture.record import Recorder, graph_of, tensor_type
from pol.graph.capture.requirements import require_capturable
from pol.graph.capture.trace import StepInputs, trace_step
from pol.graph.lowering import lower
from pol.graph.names import Names
from pol.graph.step_program import Component, StepProgram

I32_RANGE = (-(2**31), 2**31 - 1)


@dataclass(frozen=True)
class Capture:
    """A captured step: the record for native training, the program for replay, and its data as words.

    `constants` are the data set, the order and tensors that the user's code closed over; `state` is the initial state.
    """

    aten: AtenGraph
    program: StepProgram
    names: Names
    constants: list[Words]
    state: list[Words]


def capture(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    dataset: Sequence[Tensor],
    order: Tensor,
) -> Capture:
    """Capture `optimizer.step()` on `loss(model(*inputs), target)` for the batches `dataset[order[step]]`.

    `dataset` holds tensors with one row per example, the target last; `order` is an int64 tensor of shape
    (steps, batch). Neither model nor optimizer is changed. Options of the optimizer (the learning rate) become part of
    the program. Raises UnsupportedError, with the user's line, for what has no definition.
    """
    inputs = _inputs(model, loss, optimizer, dataset, order)
    entries = _entries(inputs)
    traced = trace_step(model, loss, optimizer, inputs)
    recorder = Recorder(entries)
    outputs = recorder.record(traced.graph)
    slots = [entry.name for entry in entries if entry.role is InputRole.STATE]
    next_state, value, gradients = outputs[: len(slots)], outputs[len(slots)], outputs[len(slots) + 1 :]
    recorder.name(
        {name: g for name, g in zip(traced.updated, gradients, strict=True) if isinstance(g, Ref)},
        {name: item for name, item in zip(slots, next_state, strict=True) if isinstance(item, Ref)},
        type(optimizer).__name__,
    )
    aten = graph_of(recorder, next_state, value)
    tensors = [*inputs.dataset, inputs.order, *recorder.constants]
    require_indices_in_range(aten, {entry.name: tensor for entry, tensor in zip(aten.constants, tensors, strict=True)})
    program, names = lower(aten)
    return Capture(
        aten,
        program,
        names,
        [to_words(entry.name, tensor) for entry, tensor in zip(aten.constants, tensors, strict=True)],
        [to_words(entry.name, tensor) for entry, tensor in zip(aten.slots, _state(inputs), strict=True)],
    )


def to_words(what: str, tensor: Tensor) -> Words:
    """The words of a tensor, of its shape; UnsupportedError if an integer does not fit in an i32."""
    array = tensor.detach().cpu().contiguous().numpy()
    if array.dtype == np.float32:
        return np.array(array).view(np.uint32)
    if array.size and not I32_RANGE[0] <= int(array.min()) <= int(array.max()) <= I32_RANGE[1]:
        raise UnsupportedError(f"{what} holds integers that do not fit in 32 bits; renumber them")
    return np.array(array, np.int32).view(np.uint32)


def _inputs(
    model: nn.Module, loss: Callable[[Any, Any], Tensor], optimizer: Optimizer, dataset: Sequence[Tensor], order: Tensor
) -> StepInputs:
    require_capturable(model, loss, optimizer, dataset, order)
    parameters = dict(model.named_parameters())
    return StepInputs(
        {name: parameter.detach() for name, parameter in parameters.items()},
        {name: buffer.detach() for name, buffer in model.named_buffers()},
        initial_state(optimizer, parameters),
        [tensor.detach() for tensor in dataset],
        order.detach(),
    )


def _state(inputs: StepInputs) -> list[Tensor]:
    optimizer = [inputs.optimizer[name][key] for name, key in keys(inputs.optimizer)]
    return [*inputs.parameters.values(), *inputs.buffers.values(), *optimizer]


def _entries(inputs: StepInputs) -> list[AtenInput]:
    named = [
        *((name, Component.PARAMETER) for name in inputs.parameters),
        *((name, Component.BUFFER) for name in inputs.buffers),
        *((f"{name}:{key}", Component.OPTIMIZER) for name, key in keys(inputs.optimizer)),
    ]
    state = [
        AtenInput(InputRole.STATE, name, tensor_type(name, tensor), component)
        for (name, component), tensor in zip(named, _state(inputs), strict=True)
    ]
    constants = [
        *((f"data.{index}", tensor) for index, tensor in enumerate(inputs.dataset)),
        ("order", inputs.order),
    ]
    return [
        *state,
        *(AtenInput(InputRole.CONSTANT, name, tensor_type(name, tensor)) for name, tensor in constants),
        AtenInput(InputRole.STEP, "step", tensor_type("step", torch.zeros((), dtype=torch.int64))),
    ]
