"""A step that is another one when it runs again is refused, whatever differs; one that is the same is captured."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from optimizer_training import LABELS, ORDER, X
from pol.errors import UnsupportedError
from pol.graph.capture import Capture, capture

RUNS = "POL_TEST_RUNS"
"""A counter that no guard sees: the environment of the process."""
TWO = torch.tensor(2.0)
Change = Callable[["Layer", Tensor], Tensor]


def run() -> int:
    """0 in the first run, 1 in the second one, ..."""
    number = int(os.environ.get(RUNS, "0"))
    os.environ[RUNS] = str(number + 1)
    return number


class Layer(nn.Module):
    """A linear layer behind a change of its result."""

    mean: Tensor

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.linear = nn.Linear(X.shape[1], 4)
        self.change = change
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self, self.linear(x))


def buffer(layer: Layer, y: Tensor) -> Tensor:
    found = y.detach().mean(0), y.detach().amax(0)
    layer.mean = found[run() % 2]
    return y


def fails(_: Layer, y: Tensor) -> Tensor:
    if run():
        raise RuntimeError("a second time")
    return y


def in_place(_: Layer, y: Tensor) -> Tensor:
    z, w = y * 2, y * 2
    (w if run() else z).add_(1)
    return z - w


CHANGES: dict[str, Change] = {
    "number": lambda _, y: y * (1.0 + run()),
    "number that isn't one": lambda _, y: y.nan_to_num(float("inf") if run() else float("nan")),
    "operation": lambda _, y: y.sin() if run() else y.cos(),
    "one more at the end": lambda _, y: y * 2 if not run() else (y * 2) + 1,
    "one less at the end": lambda _, y: y * 2 if run() else (y * 2) + 1,
    "operand": lambda _, y: torch.sub(*((y.sin(), y.cos()) if run() else (y.cos(), y.sin()))),
    "order in a list": lambda _, y: torch.cat([y, y.sin()] if run() else [y.sin(), y], 1)[:, :4],
    "result of several": lambda _, y: y.chunk(2, 1)[run() % 2].repeat(1, 2),
    "constant": lambda _, y: y * torch.tensor([1.0 + run()]),
    "constant or number": lambda _, y: y * (2.0 if run() else TWO),
    "number that the first run has not read": lambda _, y: y * (y.sum().item() if run() else TWO),
    "dimension": lambda _, y: y.cumsum(run() % 2),
    "type": lambda _, y: y * y.sum(dtype=torch.float32 if run() else torch.bfloat16).float(),
    "random number": lambda _, y: y + torch.rand(4) if run() else y + torch.rand(4, 4).sum(0),
    "course of gradients": lambda _, y: y * (y.detach() if run() else y),
    "next state": buffer,
    "tensor that is written": in_place,
    "failure": fails,
}


def captured(change: Change, optimizer: type[torch.optim.Optimizer] = torch.optim.SGD) -> Capture:
    """A capture of the layer, without the self-check."""
    torch.manual_seed(0)
    model = Layer(change)
    own: Any = optimizer
    return capture(model, functional.cross_entropy, own(model.parameters(), 0.1), (X, LABELS), ORDER, check=False)


@pytest.mark.parametrize("name", CHANGES)
def test_what_differs_in_a_second_run_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNS, "0")
    with pytest.raises(UnsupportedError, match="the step differs from run to run"):
        captured(CHANGES[name])


class Changing(torch.optim.Optimizer):
    """Descent whose rate is another one in each run."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # torch declares overloads
        for group in self.param_groups:
            rate = group["lr"] * (1 + run())
            for parameter in group["params"]:
                parameter.add_(parameter.grad, alpha=-rate)


def test_an_optimizer_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNS, "0")
    with pytest.raises(UnsupportedError):
        captured(lambda _, y: y, Changing)


KEPT = torch.arange(4.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda _, y: y * torch.tensor([1.0, 2.0, 3.0, 4.0]) + KEPT.detach(),
        lambda _, y: y[~torch.eye(8, 4).bool()].mean() + y,
        lambda _, y: torch.where(y > 0, y, float("nan")).nan_to_num(0.0),
        lambda _, y: functional.dropout(y, 0.5) + torch.randn(4),
        lambda _, y: torch.cat(y.clone().mul_(2).chunk(2, 1)[::-1], 1),
        lambda _, y: y + y.detach().requires_grad_(False).max(1, keepdim=True)[0],
    ],
)
def test_what_is_the_same_in_a_second_run_is_captured(change: Change) -> None:
    assert captured(change).program.nodes
