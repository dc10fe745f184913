"""The tensors that one training step depends on, and their names in a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.optimizers import OptimizerState
from pol.graph.step_program import Component

ORDER = "order"
DATA, AVERAGE = "data.", "ema."
"""Prefixes of the constants that hold the data set, and of the slots that hold averages of parameters."""


@dataclass(frozen=True)
class StepInputs:
    """The tensors that one step depends on, by name; all lie outside any autograd graph."""

    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    averages: Mapping[str, Tensor]
    optimizers: Sequence[Mapping[str, OptimizerState]]
    dataset: Mapping[str, Tensor]
    order: Tensor
    tables: Mapping[str, Tensor]
    seed: Tensor
    same_rows: bool = False
    """Every step takes the first row of the order: the caller puts a new batch into the data set."""
    first: int = 0
    """The step of these tensors."""

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of a TrainingStep; the number of the step comes last. The seed is not traced."""
        return (
            dict(self.parameters),
            dict(self.buffers),
            dict(self.averages),
            [{name: dict(state) for name, state in states.items()} for states in self.optimizers],
            list(self.dataset.values()),
            self.order,
            dict(self.tables),
            torch.zeros((), dtype=torch.int64),
        )

    def slots(self) -> list[tuple[str, Component, Tensor]]:
        """Name, component and first value of every slot of the state, in order."""
        return [
            *((name, Component.PARAMETER, tensor) for name, tensor in self.parameters.items()),
            *((name, Component.BUFFER, tensor) for name, tensor in self.buffers.items()),
            *((f"{AVERAGE}{name}", Component.BUFFER, tensor) for name, tensor in self.averages.items()),
            *(
                (self.slot(place, name, key), Component.OPTIMIZER, tensor)
                for place, states in enumerate(self.optimizers)
                for name, state in states.items()
                for key, tensor in state.items()
            ),
        ]

    def slot(self, place: int, name: str, key: str) -> str:
        """The name of a slot of the state of an optimizer; of several it names the place of its optimizer."""
        return f"{name}:{key}" if len(self.optimizers) == 1 else f"{name}:{place}.{key}"

    def constants(self) -> list[tuple[str, Tensor]]:
        """Name and value of every constant, in order; constants that the user's code closes over come after them."""
        return [
            *((f"{DATA}{key}", tensor) for key, tensor in self.dataset.items()),
            (ORDER, self.order),
            *self.tables.items(),
        ]
