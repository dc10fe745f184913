"""Assignments to ``.data``: captured as the step that torch runs, or refused with the user's line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture, to_words

ROWS, STEPS, BATCH = 12, 4, 3


class Net(nn.Module):
    """A frozen layer and a buffer beside one that is trained; ``change`` runs in forward."""

    running: Tensor

    def __init__(self, change: Callable[[Any], None] = lambda net: None) -> None:
        super().__init__()
        self.trained, self.frozen = nn.Linear(4, 3), nn.Linear(4, 4).requires_grad_(False)
        self.register_buffer("running", torch.zeros(4))
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        self.change(self)
        logits: Tensor = self.trained(self.frozen(x) + self.running)
        return logits


class Plain(Optimizer):
    """Gradient descent as people write it by hand."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # torch's has overloads
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = p.data - group["lr"] * p.grad


def momentum(net: Any) -> None:
    for slow, fast in zip(net.frozen.parameters(), list(net.trained.parameters()), strict=True):
        slow.data = slow.data * 0.9 + fast.data.mean() * 0.1


def statistics(net: Any) -> None:
    net.running.data = net.running * 0.5 + 1.0


def rescaled(net: Any) -> None:
    net.trained.weight.data = net.trained.weight.data.clamp(-0.2, 0.2)


def swapped(net: Any) -> None:
    net.running.set_(net.running * 0.5 + 1.0)


def prepared(change: Callable[[Any], None], own: bool) -> tuple[Net, Optimizer, list[Tensor], Tensor]:
    torch.manual_seed(3)
    net = Net(change)
    optimizer = Plain(net.trained.parameters()) if own else torch.optim.SGD(net.trained.parameters(), 0.1)
    data = [torch.randn(ROWS, 4), torch.randint(0, 3, (ROWS,))]
    return net, optimizer, data, torch.arange(ROWS).reshape(STEPS, BATCH)


@pytest.mark.parametrize("own", [True, False], ids=["own optimizer", "SGD"])
@pytest.mark.parametrize("change", [lambda net: None, momentum, statistics, rescaled, swapped])
def test_an_assignment_is_part_of_the_step(change: Callable[[Any], None], own: bool) -> None:
    net, optimizer, data, order = prepared(change, own)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    captured = capture(net, nn.CrossEntropyLoss(), optimizer, data, order)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    state = captured.state
    executor = CpuExecutor(captured.program, captured.constants)
    for step in range(STEPS):
        outputs = executor.run(state, step)
        state = [outputs[slot.producer] for slot in captured.program.slots]
        rows = order[step]
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(net(data[0][rows]), data[1][rows]).backward()
        optimizer.step()
    for name, words in zip(captured.names.slots, state, strict=True):
        expected = to_words(name, net.state_dict()[name]).view(np.float32)
        np.testing.assert_allclose(words.view(np.float32), expected, rtol=1e-5, atol=1e-6, err_msg=name)


def tied(net: Any) -> None:
    net.running.data = net.frozen.bias.data


def widened(net: Any) -> None:
    net.running.data = torch.zeros(1, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tied, r"test_capture_assignments\.py.*net\.frozen\.bias\.data -- .*shares the memory"),
        (widened, r"test_capture_assignments\.py.*torch\.zeros\(1, 4\) -- .*keeps its types"),
    ],
)
def test_an_assignment_that_a_trace_can_not_follow_is_refused(change: Callable[[Any], None], message: str) -> None:
    net, optimizer, data, order = prepared(change, own=False)
    with pytest.raises(UnsupportedError, match=message):
        capture(net, nn.CrossEntropyLoss(), optimizer, data, order)
