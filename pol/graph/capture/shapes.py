"""Captures the step program of a model that has no numbers: on torch's meta device it takes no memory.

The program is the one that the same model with numbers has. It says what a task would take before the model exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import Optimizer

from pol.graph.capture.assemble import record_step
from pol.graph.capture.guards.argument_checks import require_capturable
from pol.graph.capture.loop import Loop
from pol.graph.capture.optimizers.optimizer_step import OptimizerStep
from pol.graph.capture.tracing.random_operations import seed_words
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.captured_step import CapturedShapes
from pol.graph.lowering import lower


def capture_shapes(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    dataset: Sequence[Tensor],
    order: Tensor,
    loop: Loop = Loop(),  # noqa: B008  # immutable
) -> CapturedShapes:
    """As `capture`, for a model whose parameters and buffers may lie on the meta device; data set and order may not.

    Nothing is executed: neither the range of integers nor the self-check is looked at, and no task can be made of it.

    Raises:
        UnsupportedError: as `capture`.
    """
    require_capturable(model, loss, optimizer, dataset, order, loop, shapes_alone=True)
    parameters = dict(model.named_parameters())
    plan = OptimizerStep(optimizer, parameters, loop.options(optimizer, len(order)))
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: _on_cpu(mode, tensor.detach()) for name, tensor in tensors.items()}

    inputs = StepInputs(
        on_cpu(parameters),
        on_cpu({name: buffer for name, buffer in model.named_buffers() if not buffer.is_complex()}),
        on_cpu({name: parameters[name] for name in plan.initial}) if loop.ema is not None else {},
        {name: on_cpu(state) for name, state in plan.initial.items()},
        [tensor.detach() for tensor in dataset],
        order.detach(),
        plan.tables,
        seed_words(0),
    )
    recorded = record_step(model, loss, optimizer, plan, loop, inputs)
    program, names = lower(recorded.aten)
    return CapturedShapes(recorded.aten, program, names)


def _on_cpu(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """A tensor of the same shape that a trace takes for one on the CPU."""
    if not tensor.is_meta:
        return tensor
    return FakeTensor(mode, torch.empty_like(tensor), torch.device("cpu"))
