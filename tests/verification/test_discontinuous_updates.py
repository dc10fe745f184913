"""Optimizers whose updates jump are refused in tolerant mode; all others are measured."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adafactor, Adagrad, Adam, AdamW, NAdam, Optimizer, RAdam, RMSprop

import chosen_rows
from pol.demo import digits
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.aten_graph import AtenGraph
from pol.graph.capture import Capture, Loop, capture
from pol.graph.capture.optimizers.lion import Lion
from pol.training import with_int8_products
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


@pytest.mark.parametrize("name", chosen_rows.each(JUMPING, 3, others=pytest.mark.slow))
def test_updates_that_jump_are_found(name: str) -> None:
    operation, build = JUMPING[name]
    found = jump_of(graph(build))
    assert found is not None
    assert name_of(found.node) == operation
    assert found.slot.startswith(("0.", "2.", "optimizer/0.", "optimizer/2."))
    with pytest.raises(UnsupportedError, match=r"use exact mode \(margin 0\)"):
        require_continuous_update(graph(build))


def of_greatest(gradient: Tensor) -> Tensor:
    """The top k as messages of a few numbers and their places."""
    flat = gradient.flatten()
    places = flat.abs().topk(2).indices
    return torch.zeros_like(flat).scatter(0, places, flat.gather(0, places)).view_as(gradient)


class ErrorFeedback(Optimizer):
    """Sends a few numbers of a gradient, and keeps the rest for later: as DeMo and other compressions do."""

    def __init__(self, params: Iterable[Any], decay: float) -> None:
        super().__init__(params, {"decay": decay})
        for parameter in (entry for group in self.param_groups for entry in group["params"]):
            self.state[parameter]["residual"] = torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                residual = self.state[parameter]["residual"].mul_(group["decay"]).add_(parameter.grad)
                sent = of_greatest(residual)
                residual.sub_(sent)
                parameter.sub_(sent, alpha=1e-3)


@pytest.mark.parametrize(
    "build", [partial(Own, direction=of_greatest, averages=False), partial(ErrorFeedback, decay=0.9)]
)
def test_compressed_gradients_are_found(build: Callable[..., Optimizer]) -> None:
    found = jump_of(graph(build))
    assert found is not None
    assert name_of(found.node) == "topk"


class Straight(nn.Module):
    """Weights of a few levels, with a gradient as if they weren't."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 64) / 8)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight + ((self.weight * 7).round() / 7 - self.weight).detach())


@pytest.mark.parametrize("kind", ["int8", "levels"])
def test_quantized_networks_are_found(kind: str) -> None:
    torch.manual_seed(0)
    model = with_int8_products(nn.Sequential(nn.Linear(64, 10))) if kind == "int8" else Straight()
    optimizer = AdamW(model.parameters())
    found = capture(model, functional.cross_entropy, optimizer, digits.dataset(), digits.order(1, 4), Loop())
    with pytest.raises(UnsupportedError, match=r"^round \(node .*test_discontinuous|^round \(node .*int8_linear"):
        require_continuous_update(found.aten)


CONTINUOUS: dict[str, Callable[..., Optimizer]] = {
    "sgd": partial(SGD, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": Adam,
    "adamw amsgrad": partial(AdamW, amsgrad=True),
    "rmsprop": partial(RMSprop, momentum=0.5, centered=True),
    "adagrad": Adagrad,
    "adafactor": Adafactor,
    "radam": RAdam,
    "nadam": NAdam,
    "tanh of an average": partial(Own, direction=torch.tanh),
}


@pytest.mark.parametrize("name", chosen_rows.each(CONTINUOUS, 3, others=pytest.mark.slow))
def test_other_updates_are_not(name: str) -> None:
    assert jump_of(graph(CONTINUOUS[name])) is None


def test_jumps_of_the_network_are_kinks_of_it() -> None:
    """A network's comparisons stand before the sums of the backward pass: their flips don't stay."""

    def loss(output: Tensor, target: Tensor) -> Tensor:
        one_hot = functional.one_hot(target, 10)
        return (output.clamp(-3, 3) - one_hot).abs().mean() + torch.where(output > 0.5, output, 0.1 * output).mean()

    assert jump_of(graph(Adam, loss=loss)) is None
    assert jump_of(graph(Adam, loop=Loop(clip_norm=0.5))) is None


class Image(nn.Module):
    """Kinks and choices of networks: pooling, dropout, normalization, a router, places that are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.turn = nn.Linear(64, 6)
        self.router = nn.Linear(64, 3)
        self.experts = nn.Parameter(torch.randn(3, 64, 10) / 8)

    def forward(self, x: Tensor) -> Tensor:
        image = x.view(-1, 1, 8, 8)
        grid = functional.affine_grid(self.turn(x).view(-1, 2, 3), [len(x), 1, 8, 8], align_corners=False)
        image = image + functional.grid_sample(image, grid, align_corners=False)
        hidden = functional.max_pool2d(functional.relu(self.norm(self.convolution(image))), 2).flatten(1)
        hidden = functional.dropout(functional.hardtanh(hidden), 0.2)
        choice = self.router(hidden).softmax(1).topk(1)
        output = torch.bmm(hidden.unsqueeze(1), self.experts[choice.indices[:, 0]]).squeeze(1)
        return output * choice.values


def test_kinks_and_choices_of_a_network_are_accepted() -> None:
    torch.manual_seed(0)
    model = Image()
    optimizer = AdamW(model.parameters())
    loop = Loop(clip_norm=1.0)
    found = capture(model, functional.cross_entropy, optimizer, digits.dataset(), digits.order(1, 4), loop)
    require_continuous_update(found.aten)


def test_embeddings_and_clipped_values_are_accepted() -> None:
    class Clipped(SGD):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(parameter.grad.clamp(-0.01, 0.01), alpha=group["lr"])

    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(17, 6), nn.Flatten(), nn.ReLU(), nn.Linear(6 * 5, 3))
    tokens = torch.randint(0, 17, (40, 5))
    data = (tokens, tokens.sum(1) % 3)
    order = torch.arange(16).view(4, 4)
    found = capture(model, functional.cross_entropy, Clipped(model.parameters(), lr=0.1), data, order, Loop())
    require_continuous_update(found.aten)


def test_low_precision_in_the_network_is_none_of_the_update() -> None:
    assert jump_of(graph(AdamW, loop=Loop(precision="bf16-mixed"))) is None


def test_a_profile_refuses_and_exact_mode_does_not() -> None:
    store = Store("memory://jumps")
    task = load(store, publish(store, captured(partial(Lion, lr=1e-3)), steps=4, interval=2)[0])
    with pytest.raises(UnsupportedError, match=r"^sign \(node .*Lion \(0.weight\)\) decides how 0.weight is updated"):
        measure_profile(task, CpuExecutor, 1, 1)
    assert measure_profile(task, CpuExecutor, 0, 0, 0).thresholds == (0, 0, 0)
