"""One training step as a function of tensors: batches, forward, backward, clipping, update, averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks_from_tensors
from torch.fx import traceback as fx_traceback

from pol.errors import UnsupportedError
from pol.graph.capture.optimizers import OptimizerState
from pol.graph.capture.optimizers.optimizer_step import OptimizerStep
from pol.graph.capture.replacements.torch_functions import ReplacedFunctions
from pol.graph.capture.tracing.provenance import PHASE, ROLE, SOURCE, LineRecorder
from pol.graph.capture.tracing.random_operations import CounterRandomness
from pol.graph.capture.tracing.tensor_assignments import DataAssignments
from pol.graph.capture.training import Phase, Training

_REPLACED = "the model replaces one of its parameters during the step; only the optimizer may"
_LOSSES = {torch.float32, torch.bfloat16}


class _ModelAndLosses(nn.Module):
    """Model and losses as one module, so that a loss that reads the model reads the traced parameters too."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self.model = training.model
        for number, loss in enumerate(training.losses):
            setattr(self, f"loss{number}", loss)

    def forward(self, work: Callable[[], Any]) -> Any:
        """Run `work` while functional_call has replaced parameters and buffers."""
        return work()


class TrainingStep:
    """The step as a function of the tensors of StepInputs.

    It returns the next parameters, buffers, averages and optimizer state, the loss of each phase, and the gradients of
    each phase. `plans` are the updates of the optimizers, `keys` the names of the tensors of the data set.
    Raises UnsupportedError for a model or a loss that cannot be trained.
    """

    def __init__(
        self,
        training: Training,
        plans: Sequence[OptimizerStep],
        keys: Sequence[str],
        seed: Tensor,
        same_rows: bool = False,
    ) -> None:
        self.lines = LineRecorder(training.model)
        self._assignments = DataAssignments(self.lines.running)
        self._replaced = ReplacedFunctions()
        self._module = _ModelAndLosses(training)
        self._training = training
        self._plans = plans
        self._loop = training.loop
        self._keys = keys
        self._seed = seed
        self._same_rows = same_rows

    def __call__(
        self,
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        averages: dict[str, Tensor],
        states: list[dict[str, OptimizerState]],
        dataset: Sequence[Tensor],
        order: Tensor,
        tables: dict[str, Tensor],
        number: Tensor,
    ) -> Any:
        """One step from these tensors."""
        with self._assignments, self._replaced:
            batches = self._batches(dataset, order, number)
            entries = _entries(tables, number)
            with fx_traceback.annotate({PHASE: "forward"}):
                current = {name: buffer.clone() for name, buffer in buffers.items()}
            own = [tensor for members in states for state in members.values() for tensor in state.values()]
            randomness = CounterRandomness(number, self._seed)
            after, moved = dict(parameters), [dict(members) for members in states]
            values, gradients = [], []
            for turn, phase in enumerate(self._training.phases):
                updated = updated_names([moved[place] for place in phase.optimizers], parameters)
                with fx_traceback.annotate({PHASE: "forward"}):
                    leaves = {name: p.detach().requires_grad_(name in updated) for name, p in after.items()}
                self._assignments.own([*leaves.values(), *current.values(), *averages.values(), *own])
                value, found = self._loss_and_gradients(phase, leaves, current, updated, batches, randomness)
                with fx_traceback.annotate({PHASE: "clip", SOURCE: "clipping of gradients"}):
                    clipped = self._loop.clipped(found)
                with fx_traceback.annotate({PHASE: "update"}), torch.no_grad():
                    after = {name: leaf.detach() for name, leaf in leaves.items()}
                    for place in phase.optimizers:
                        given = {name: g for name, g in clipped.items() if name in moved[place]}
                        own_turn = self._training.turns(place).index(turn)
                        new, states_after = self._plans[place](leaves, given, moved[place], entries, own_turn)
                        after.update(new)
                        moved[place].update(states_after)
                values.append(value)
                gradients += [found.get(name) for name in updated]
            with fx_traceback.annotate({PHASE: "update"}), torch.no_grad():
                shares = [self._loop.averaged(average, after[name]) for name, average in averages.items()]
            return (
                list(after.values()),
                [current[name].detach() for name in buffers],
                shares,
                [
                    m[name][key]
                    for m, s in zip(moved, states, strict=True)
                    for name, state in s.items()
                    for key in state
                ],
                values,
                gradients,
            )

    def _loss_and_gradients(
        self,
        phase: Phase,
        leaves: dict[str, Tensor],
        buffers: dict[str, Tensor],
        updated: Sequence[str],
        batches: Sequence[list[Tensor]],
        randomness: CounterRandomness,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of the micro-batches, and its gradients, added up one after another; buffers change."""
        total: Tensor | None = None
        gradients: dict[str, Tensor] = {}
        with fx_traceback.annotate({PHASE: "forward", SOURCE: "number of micro-batches or items"}), torch.no_grad():
            parts = phase.objective.parts(self._loop, batches)
        for batch in batches:
            value, found = self._micro_batch(phase, leaves, buffers, updated, batch, parts, randomness)
            # torch's annotation leaves out that `allow_unused` gives None.
            pairs: list[tuple[str, Tensor | None]] = list(zip(updated, found, strict=True))
            with fx_traceback.annotate({PHASE: "backward"}), torch.no_grad():
                for name, gradient in pairs:
                    if gradient is not None:
                        gradients[name] = gradients[name] + gradient if name in gradients else gradient
            with fx_traceback.annotate({PHASE: "forward", SOURCE: "sum of the losses"}):
                total = value.detach() if total is None else total + value.detach()
        if total is None:
            raise AssertionError("a step has a batch")
        return total, gradients

    def _micro_batch(
        self,
        phase: Phase,
        leaves: dict[str, Tensor],
        buffers: dict[str, Tensor],
        updated: Sequence[str],
        batch: list[Tensor],
        parts: int | Tensor,
        randomness: CounterRandomness,
    ) -> tuple[Tensor, Sequence[Tensor | None]]:
        """The loss of a micro-batch and its gradients; buffers change."""

        def work() -> tuple[Tensor, Sequence[Tensor | None]]:
            # The backward pass draws too: checkpointing repeats draws there.
            with randomness:
                with fx_traceback.annotate({PHASE: "forward"}):
                    value = self._forward(phase, batch, parts)
                    with fx_traceback.annotate({SOURCE: f"loss / {parts if isinstance(parts, int) else 'items'}"}):
                        value = phase.objective.share(value, parts)
                setup_stacktrace_preservation_hooks_from_tensors([value])
                with fx_traceback.annotate({PHASE: "backward"}):
                    return value, torch.autograd.grad(value, [leaves[name] for name in updated], allow_unused=True)

        # functional_call writes buffers that the model has assigned to back into this dictionary. The backward pass is
        # inside as well: checkpointing runs modules again there, on the parameters that stand in.
        current = {f"model.{name}": tensor for name, tensor in (*buffers.items(), *leaves.items())}
        found: tuple[Tensor, Sequence[Tensor | None]] = torch.func.functional_call(self._module, current, (work,))
        if any(current[f"model.{name}"] is not leaf for name, leaf in leaves.items()):
            raise UnsupportedError(_REPLACED)
        buffers.update({name: current[f"model.{name}"] for name in buffers})
        return found

    def _forward(self, phase: Phase, batch: list[Tensor], parts: int | Tensor) -> Tensor:
        with self.lines, self.lines.modules(self._module, phase.objective.loss), self._loop.forward_precision():
            value: object = phase.objective(self._module.model, batch, parts)
        if value is None and phase.objective.loss is None:
            raise UnsupportedError(
                "the model gives no loss for this batch: put its labels into the data set under the name that the "
                "model knows, or give a loss function"
            )
        if not isinstance(value, Tensor) or value.numel() != 1 or value.dtype not in _LOSSES:
            raise UnsupportedError("the loss function must return one float32 number; use reduction='mean' or .sum()")
        if not value.requires_grad:
            raise UnsupportedError("the loss does not depend on any parameter that the optimizer updates")
        return value.reshape(())

    def _batches(self, dataset: Sequence[Tensor], order: Tensor, number: Tensor) -> list[list[Tensor]]:
        """The examples of the step, a list of tensors for each micro-batch."""
        parts = self._loop.accumulation
        with fx_traceback.annotate({PHASE: "batch", SOURCE: "batch = dataset[order[step]]"}):
            with fx_traceback.annotate({ROLE: "batch.rows"}):
                row = order if self._same_rows else order.index_select(0, number.reshape(1))
                rows = row.reshape(order.shape[1])
            if parts == 1:
                return [self._examples(dataset, rows, "")]
            micro = rows.reshape(parts, order.shape[1] // parts)
            return [self._examples(dataset, micro[part], f".{part}") for part in range(parts)]

    def _examples(self, dataset: Sequence[Tensor], rows: Tensor, suffix: str) -> list[Tensor]:
        batch = []
        for key, tensor in zip(self._keys, dataset, strict=True):
            with fx_traceback.annotate({ROLE: f"batch.{key}{suffix}"}):
                batch.append(tensor.index_select(0, rows))
        return batch


def updated_names(states: Sequence[Mapping[str, object]], parameters: Iterable[str]) -> list[str]:
    """The parameters that some optimizers update, in the order of the parameters."""
    return [name for name in parameters if any(name in members for members in states)]


def _entries(tables: Mapping[str, Tensor], number: Tensor) -> dict[str, Tensor]:
    """The numbers of this step."""
    found = {}
    for name, table in tables.items():
        with fx_traceback.annotate({PHASE: "update", ROLE: name}):
            found[name] = table.index_select(0, number.reshape(1)).reshape(())
    return found
