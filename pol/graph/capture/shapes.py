"""Captures the step program of a model that has no numbers: on torch's meta device it takes no memory.

The program is the one that the same model with numbers has. It says what a task would take before the model exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from pol.graph.capture.assemble import optimizer_steps, record_step, step_inputs
from pol.graph.capture.guards.argument_checks import require_capturable
from pol.graph.capture.loop import Loop
from pol.graph.capture.training import Dataset, Losses, Optimizers, Training, named_tensors
from pol.graph.captured_step import CapturedShapes
from pol.graph.lowering import lower


def capture_shapes(
    model: nn.Module,
    loss: Losses,
    optimizer: Optimizers,
    dataset: Dataset,
    order: Tensor,
    loop: Loop = Loop(),  # noqa: B008  # immutable
) -> CapturedShapes:
    """As `capture`, for a model whose parameters and buffers may lie on the meta device; data set and order may not.

    Nothing is executed: neither the range of integers nor the self-check is looked at, and no task can be made of it.
    """
    training = Training.of(model, loss, optimizer, dataset, loop)
    require_capturable(training, dataset, order, shapes_alone=True)
    plans = optimizer_steps(training, [loop.options(own, len(order)) for own in training.optimizers])
    given = step_inputs(training, plans, named_tensors(dataset), order, seed=0)
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: _on_cpu(mode, tensor) for name, tensor in tensors.items()}

    inputs = replace(
        given,
        parameters=on_cpu(given.parameters),
        buffers=on_cpu(given.buffers),
        averages=on_cpu(given.averages),
        optimizers=[{name: on_cpu(state) for name, state in states.items()} for states in given.optimizers],
    )
    recorded = record_step(training, plans, inputs)
    program, names = lower(recorded.aten)
    return CapturedShapes(recorded.aten, program, names)


def _on_cpu(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """A tensor of the same shape that a trace takes for one on the CPU."""
    if not tensor.is_meta:
        return tensor
    return FakeTensor(mode, torch.empty_like(tensor), torch.device("cpu"))
