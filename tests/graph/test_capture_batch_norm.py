"""Batch normalisation keeps its running statistics through a capture, in training and in evaluation."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD

import chosen_rows
from graph.test_lowering_operations import outputs_of
from pol.execution.reference import next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Loop, capture
from pol.training.task.task_training import to_tensor

STEPS, ROWS = 3, 24
IMAGES = torch.randn(ROWS, 3, 2, 2, generator=torch.manual_seed(1)) * 2 + 1
LABELS = torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (STEPS, 8), generator=torch.manual_seed(2))


def fixed(layer: nn.BatchNorm2d) -> nn.Module:
    layer.running_mean.normal_()
    layer.running_var.uniform_(0.5, 2)
    return layer.eval()


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "training": lambda: nn.BatchNorm2d(3),
    "fast": lambda: nn.BatchNorm2d(3, momentum=0.7, affine=False),
    "statistics of the batch": lambda: nn.BatchNorm2d(3, track_running_stats=False),
    "fixed": lambda: fixed(nn.BatchNorm2d(3)),
    "fixed, no weight": lambda: fixed(nn.BatchNorm2d(3, affine=False)),
}


@pytest.mark.parametrize("micro", chosen_rows.first([2, 1], 1, others=pytest.mark.slow))
@pytest.mark.parametrize("name", LAYERS)
def test_running_statistics_move_as_in_the_users_loop(name: str, micro: int) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 2), LAYERS[name](), nn.Tanh(), nn.Flatten(), nn.Linear(12, 3))
    optimizer = SGD(model.parameters(), 0.2)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    result = capture(model, functional.cross_entropy, optimizer, (IMAGES, LABELS), ORDER, Loop(accumulation=micro))
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    native = NativeExecutor(result.aten)
    types = [entry.type for entry in result.aten.slots]
    state = [to_tensor(type_, words) for type_, words in zip(types, result.state, strict=True)]
    words = result.state
    for step in range(STEPS):
        optimizer.zero_grad()
        for rows in ORDER[step].reshape(micro, -1):
            (functional.cross_entropy(model(IMAGES[rows]), LABELS[rows]) / micro).backward()
        optimizer.step()
        state, _ = native.run(state, [IMAGES, LABELS, ORDER], step)
        words = next_state(result.program, outputs_of(result.program, words, result.constants, step))
    expected = model.state_dict()
    for slot, type_, tensor, canonical in zip(result.names.slots, types, state, words, strict=True):
        torch.testing.assert_close(tensor, expected[slot], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(to_tensor(type_, canonical), expected[slot], rtol=1e-4, atol=1e-5)
