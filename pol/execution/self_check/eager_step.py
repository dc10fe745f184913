"""The user's own step in eager mode: the model, the losses and the optimizers themselves, without a capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import pol.execution.stock_torch.torch_random  # noqa: F401  # gives the draws their numbers
from pol.errors import PolError, UnsupportedError
from pol.execution.stock_torch.defined_results import DefinedResults
from pol.graph.capture.guards.mutation_guard import mutation_guard
from pol.graph.capture.loop import scheduled_options
from pol.graph.capture.optimizers import Options
from pol.graph.capture.tracing.aten_recorder import gradient_labels
from pol.graph.capture.tracing.provenance import line_of_error
from pol.graph.capture.tracing.random_operations import CounterRandomness
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.trace import first_line
from pol.graph.capture.tracing.training_step import updated_names
from pol.graph.capture.training import Phase, Training, uncompiled


@dataclass(frozen=True)
class EagerStep:
    """The user's objects of a capture; `options` are those of each optimizer, by step and parameter group."""

    training: Training
    options: Sequence[Sequence[Sequence[Options]]]
    inputs: StepInputs

    @property
    def steps(self) -> int:
        """The number of steps of the training."""
        return len(self.options[0])

    @contextmanager
    def run_on_objects(self) -> Iterator[EagerRun]:
        """Runs steps on the user's objects; they are restored at the end, also after an exception."""
        model, optimizers = self.training.model, self.training.optimizers
        own = {f"model.{name}": tensor for name, tensor in (*self._parameters().items(), *model.named_buffers())}
        options = [[dict(group) for group in optimizer.param_groups] for optimizer in optimizers]
        with mutation_guard({**own, **self.training.roots()}), uncompiled(), torch.enable_grad():
            try:
                yield EagerRun(self, self._parameters())
            finally:
                for optimizer, groups in zip(optimizers, options, strict=True):
                    for group, before in zip(optimizer.param_groups, groups, strict=True):
                        group.update(before)

    def _parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.training.model.named_parameters())


class EagerRun:
    """Runs steps in place on the user's objects, one after another."""

    def __init__(self, step: EagerStep, parameters: Mapping[str, nn.Parameter]) -> None:
        self._step = step
        self._parameters = parameters
        # Only these are set: values that the optimizer's own step writes into its groups have to stay.
        self._scheduled = [
            scheduled_options(optimizer, options)
            for optimizer, options in zip(step.training.optimizers, step.options, strict=True)
        ]
        self._averages = {name: average.clone() for name, average in step.inputs.averages.items()}
        states = step.inputs.optimizers
        self._updated = [
            updated_names([states[place] for place in phase.optimizers], parameters) for phase in step.training.phases
        ]

    def run(self, rows: Tensor, number: int) -> tuple[list[Tensor], dict[str, Tensor]]:
        """The loss of each phase on these rows of the data set, and every gradient by its label.

        Raises UnsupportedError where the user's step fails.
        """
        losses, found = [], []
        try:
            with DefinedResults(), CounterRandomness(torch.tensor(number), self._step.inputs.seed):
                for phase, names in zip(self._step.training.phases, self._updated, strict=True):
                    losses.append(self._backward(phase, rows))
                    gradients = [self._parameters[name].grad for name in names]
                    found += [None if g is None else g.detach().clone() for g in gradients]
                    self._update(
                        phase, [name for name, g in zip(names, gradients, strict=True) if g is not None], number
                    )
            for name, average in self._averages.items():
                share = 1.0 - (self._step.training.loop.ema or 0.0)
                average.copy_(average.float().lerp(self._parameters[name].detach().float(), share))
        except PolError:
            raise
        except Exception as error:
            raise UnsupportedError(_failure(error)) from error
        labels = gradient_labels(self._updated)
        return losses, {name: g for name, g in zip(labels, found, strict=True) if g is not None}

    def state(self) -> list[Tensor]:
        """Copies of the tensors of the state, in the order of the captured slots."""
        inputs, training = self._step.inputs, self._step.training
        buffers = dict(training.model.named_buffers())
        found = [*(self._parameters[name] for name in inputs.parameters), *(buffers[name] for name in inputs.buffers)]
        found += self._averages.values()
        for optimizer, members in zip(training.optimizers, inputs.optimizers, strict=True):
            for name, states in members.items():
                now = optimizer.state.get(self._parameters[name], {})
                found += [now[key] if isinstance(now.get(key), Tensor) else initial for key, initial in states.items()]
        return [tensor.detach().clone() for tensor in found]

    def _backward(self, phase: Phase, rows: Tensor) -> Tensor:
        step, loop = self._step, self._step.training.loop
        for parameter in self._parameters.values():
            parameter.grad = None
        total = torch.zeros(())
        data = step.inputs.dataset.values()
        batches = [[t.index_select(0, part) for t in data] for part in rows.reshape(loop.accumulation, -1)]
        parts = phase.objective.parts(loop, batches)
        for batch in batches:
            with loop.forward_precision():
                value = phase.objective.share(phase.objective(step.training.model, batch, parts), parts)
            value.backward()
            total = total + value.detach().reshape(())
        return total

    def _update(self, phase: Phase, names: Sequence[str], number: int) -> None:
        training, loop = self._step.training, self._step.training.loop
        members = [self._parameters[name] for name in names]
        if loop.clip_value is not None:
            nn.utils.clip_grad_value_(members, loop.clip_value)
        elif loop.clip_norm is not None and members:
            nn.utils.clip_grad_norm_(members, loop.clip_norm)
        for place in phase.optimizers:
            optimizer, options = training.optimizers[place], self._step.options[place][number]
            for group, values, keys in zip(optimizer.param_groups, options, self._scheduled[place], strict=True):
                group.update({key: values[key] for key in keys})
            # The step of the class: a scheduler wraps the one of the object to count.
            type(optimizer).step(optimizer)


def _failure(error: Exception) -> str:
    line = line_of_error(error.__traceback__, __file__)
    return (
        f"{line or 'the step'} -- your own step fails with {type(error).__name__}: {first_line(error)}. Run your loop "
        "for one batch of the order before you capture it"
    )
