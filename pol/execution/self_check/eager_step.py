"""The user's own step in eager mode: the model, the loss and the optimizer themselves, without a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import pol.execution.stock_torch.torch_random  # noqa: F401  # gives the draws their numbers
from pol.errors import PolError, UnsupportedError
from pol.execution.stock_torch.stable_order import StableOrder
from pol.graph.capture.guards.mutation_guard import mutation_guard
from pol.graph.capture.loop import Loop, scheduled_options
from pol.graph.capture.optimizers import Options
from pol.graph.capture.tracing.provenance import line_of_error
from pol.graph.capture.tracing.random_operations import CounterRandomness
from pol.graph.capture.tracing.step_inputs import StepInputs


@dataclass(frozen=True)
class EagerStep:
    """Model, loss, optimizer and loop of a capture, with the options of every parameter group at every step."""

    model: nn.Module
    loss: Callable[[Any, Any], Tensor]
    optimizer: Optimizer
    loop: Loop
    options: Sequence[Sequence[Options]]
    inputs: StepInputs

    @contextmanager
    def run_on_objects(self) -> Iterator[EagerRun]:
        """Runs steps on the user's objects; they are restored at the end, also after an exception."""
        own = {f"model.{name}": tensor for name, tensor in (*self._parameters().items(), *self.model.named_buffers())}
        roots = {**own, "model": self.model, "loss": self.loss, "optimizer": self.optimizer}
        options = [dict(group) for group in self.optimizer.param_groups]
        with mutation_guard(roots), torch.enable_grad():
            try:
                yield EagerRun(self, self._parameters())
            finally:
                for group, before in zip(self.optimizer.param_groups, options, strict=True):
                    group.update(before)

    def _parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.model.named_parameters())


class EagerRun:
    """Runs steps in place on the user's objects, one after another."""

    def __init__(self, step: EagerStep, parameters: Mapping[str, nn.Parameter]) -> None:
        self._step = step
        self._parameters = parameters
        # Only these are set: values that the optimizer's own step writes into its groups have to stay.
        self._scheduled = scheduled_options(step.optimizer, step.options)
        self._averages = {name: average.clone() for name, average in step.inputs.averages.items()}

    def run(self, rows: Tensor, number: int) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss on these rows of the data set, and the gradient of every parameter that got one.

        Raises UnsupportedError where the user's step fails.
        """
        for parameter in self._parameters.values():
            parameter.grad = None
        try:
            loss = self._backward(rows, number)
            gradients = {
                name: parameter.grad.detach().clone()
                for name, parameter in self._parameters.items()
                if name in self._step.inputs.optimizer and parameter.grad is not None
            }
            self._update(gradients, number)
        except PolError:
            raise
        except Exception as error:
            line = line_of_error(error.__traceback__, __file__)
            raise UnsupportedError(
                f"{line or 'the step'} -- your own step fails with {type(error).__name__}: {error}. Run your loop for "
                "one batch of the order before you capture it"
            ) from error
        return loss, gradients

    def state(self) -> list[Tensor]:
        """Copies of the tensors of the state, in the order of the captured slots."""
        inputs = self._step.inputs
        buffers = dict(self._step.model.named_buffers())
        found = [*(self._parameters[name] for name in inputs.parameters), *(buffers[name] for name in inputs.buffers)]
        found += self._averages.values()
        for name, states in inputs.optimizer.items():
            now = self._step.optimizer.state.get(self._parameters[name], {})
            found += [now[key] if isinstance(now.get(key), Tensor) else initial for key, initial in states.items()]
        return [tensor.detach().clone() for tensor in found]

    def _backward(self, rows: Tensor, number: int) -> Tensor:
        step = self._step
        total = torch.zeros(())
        parts = rows.reshape(step.loop.accumulation, -1)
        with StableOrder(), CounterRandomness(torch.tensor(number), step.inputs.seed):
            for part in parts:
                *batch, target = (tensor.index_select(0, part) for tensor in step.inputs.dataset)
                with step.loop.forward_precision():
                    value = step.loss(step.model(*batch), target)
                value = value / len(parts) if len(parts) > 1 else value
                value.backward()  # type: ignore[no-untyped-call]  # torch declares no types
                total = total + value.detach().reshape(())
        return total

    def _update(self, gradients: Mapping[str, Tensor], number: int) -> None:
        step, loop = self._step, self._step.loop
        members = [self._parameters[name] for name in gradients]
        if loop.clip_value is not None:
            nn.utils.clip_grad_value_(members, loop.clip_value)
        elif loop.clip_norm is not None and members:
            nn.utils.clip_grad_norm_(members, loop.clip_norm)
        for group, options, keys in zip(
            step.optimizer.param_groups, step.options[number], self._scheduled, strict=True
        ):
            group.update({key: options[key] for key in keys})
        # The step of the class: a scheduler wraps the one of the object to count.
        type(step.optimizer).step(step.optimizer)
        for name, average in self._averages.items():
            average.copy_(average.float().lerp(self._parameters[name].detach().float(), 1.0 - (loop.ema or 0.0)))
