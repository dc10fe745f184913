"""Captures a step of a function behind a linear layer, and compares both executors and the user's own step."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.capture import Capture, capture
from pol.training.task.task_randomness import TaskRandomness

ROWS, WIDTH = 6, 8
INPUTS = torch.randn(24, 5, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(24) % 3
ORDER = torch.arange(24).view(4, ROWS)


class Behind(nn.Module):
    """A linear layer before a function of a (ROWS, WIDTH) tensor."""

    def __init__(self, function: Callable[[Tensor], Tensor], width: int = WIDTH) -> None:
        super().__init__()
        self.linear = nn.Linear(5, width)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.linear(x))


def behind_all(functions: Iterable[Callable[[Tensor], Tensor]]) -> Behind:
    """The layer before several functions, whose results stand one behind the other in the output."""
    every = list(functions)
    return Behind(lambda x: torch.cat([function(x).float().flatten() for function in every]))


def mean_square(output: Tensor, target: Tensor) -> Tensor:
    return output.float().square().mean()


def compared_step(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor] = mean_square,
    dataset: tuple[Tensor, ...] = (INPUTS, LABELS),
    order: Tensor = ORDER,
    seed: int = 7,
) -> Capture:
    """The capture of a step, whose self-check passes; both executors agree, and the loss is that of eager torch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = capture(model, loss, optimizer, dataset, order, seed=seed)
    expected = ReferenceExecutor(found.program, found.constants).run(found.state, 1)
    outputs = CpuExecutor(found.program, found.constants).run(found.state, 1)
    assert all(np.array_equal(own, other) for own, other in zip(outputs, expected, strict=True))
    rows = order[1]
    with TaskRandomness(seed).step(1):
        value = loss(model(*(tensor[rows] for tensor in dataset[:-1])), dataset[-1][rows])
    got = float(outputs[found.names.observed["loss"]].view(np.float32))
    np.testing.assert_allclose(got, float(value.detach()), rtol=2e-4, atol=1e-6)
    return found
