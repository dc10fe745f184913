"""Optimizers whose updates jump are refused in tolerant mode; all others are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adafactor, Adagrad, Adam, AdamW, Optimizer, RMSprop

from pol.demo import digits
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.aten_graph import AtenGraph
from pol.graph.capture import Capture, Loop, capture
from pol.graph.capture.optimizers.lion import Lion
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.verification.profile.discontinuous_updates import jump_of, name_of, require_continuous_update
from pol.verification.profile.profiling import measure_profile


class Own(Optimizer):
    """Moves parameters by ``direction`` of an average; without an average, of the gradient."""

    def __init__(self, params: Iterable[Any], direction: Callable[[Tensor], Tensor], averages: bool = True) -> None:
        super().__init__(params, {"direction": direction, "averages": averages})
        for parameter in (entry for group in self.param_groups for entry in group["params"] if averages):
            self.state[parameter]["average"] = torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                average = parameter.grad
                if group["averages"]:
                    average = self.state[parameter]["average"].mul_(0.9).add_(parameter.grad, alpha=0.1)
                parameter.sub_(group["direction"](average), alpha=1e-3)


def captured(
    build: Callable[..., Optimizer], loop: Loop | None = None, loss: Any = functional.cross_entropy
) -> Capture:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 10))
    order = digits.order(1, 4)
    return capture(model, loss, build(model.parameters()), digits.dataset(), order, loop or Loop())


def graph(build: Callable[..., Optimizer], **options: Any) -> AtenGraph:
    return captured(build, **options).aten


def muon(average: Tensor) -> Tensor:
    """Orthogonalized in bfloat16."""
    if average.ndim < 2:
        return average
    x: Tensor = average.bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(2):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.float()


JUMPING: dict[str, tuple[str, Callable[..., Optimizer]]] = {
    "lion": ("sign", partial(Lion, lr=1e-3)),
    "sign of a gradient": ("sign", partial(Own, direction=torch.sign, averages=False)),
    "sign of an average": ("sign", partial(Own, direction=torch.sign)),
    "rounded": ("round", partial(Own, direction=torch.round)),
    "top-k": (
        "topk",
        partial(Own, direction=lambda average: average * (average.abs() >= average.abs().flatten().topk(2).values[-1])),
    ),
    "a threshold": ("gt", partial(Own, direction=lambda average: torch.where(average > 0.01, average, 0.0))),
    "muon": ("_to_copy", partial(Own, direction=muon)),
}


@pytest.mark.parametrize("name", JUMPING)
def test_updates_that_jump_are_found(name: str) -> None:
    operation, build = JUMPING[name]
    found = jump_of(graph(build))
    assert found is not None
    assert name_of(found.node) == operation
    assert found.slot.startswith(("0.", "2.", "optimizer/0.", "optimizer/2."))
    with pytest.raises(UnsupportedError, match=r"use exact mode \(margin 0\)"):
        require_continuous_update(graph(build))


CONTINUOUS: dict[str, Callable[..., Optimizer]] = {
    "sgd": partial(SGD, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": Adam,
    "adamw amsgrad": partial(AdamW, amsgrad=True),
    "rmsprop": partial(RMSprop, momentum=0.5, centered=True),
    "adagrad": Adagrad,
    "adafactor": Adafactor,
    "tanh of an average": partial(Own, direction=torch.tanh),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_other_updates_are_not(name: str) -> None:
    assert jump_of(graph(CONTINUOUS[name])) is None


def test_jumps_of_the_network_are_kinks_of_it() -> None:
    """A network's comparisons stand before the sums of the backward pass: their flips don't stay."""

    def loss(output: Tensor, target: Tensor) -> Tensor:
        one_hot = functional.one_hot(target, 10)
        return (output.clamp(-3, 3) - one_hot).abs().mean() + torch.where(output > 0.5, output, 0.1 * output).mean()

    assert jump_of(graph(Adam, loss=loss)) is None
    assert jump_of(graph(Adam, loop=Loop(clip_norm=0.5))) is None


def test_low_precision_in_the_network_is_none_of_the_update() -> None:
    assert jump_of(graph(AdamW, loop=Loop(precision="bf16-mixed"))) is None


def test_a_profile_refuses_and_exact_mode_does_not() -> None:
    store = Store("memory://jumps")
    task = load(store, publish(store, captured(partial(Lion, lr=1e-3)), steps=4, interval=2)[0])
    with pytest.raises(UnsupportedError, match=r"^sign \(node .*Lion \(0.weight\)\) decides how 0.weight is updated"):
        measure_profile(task, CpuExecutor, 1, 1)
    assert measure_profile(task, CpuExecutor, 0, 0, 0).thresholds == (0, 0, 0)
