"""What is trained through the loss beside the exact step: its gradient would be missing, so its line is refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_loop_training import X, batches, plain, training
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, AdamW, Optimizer

from pol import TaskRandomness, UnsupportedError, exact
from pol.errors import ProtocolError
from pol.training.exact.exact_step import ExactStep

GRADIENTS = "an exact step keeps no gradients: leave out the line"
BATCH = "of the batch requires a gradient, and an exact step computes none for it"


class Parts:
    """A model whose first layer alone is trained by the exact step."""

    def __init__(self) -> None:
        with TaskRandomness(7).initialization():
            self.model = plain()
        self.first = AdamW(self.model.get_submodule("0").parameters(), 1e-2)
        self.other: Optimizer = SGD(self.head.parameters(), 0.1)
        self.step: ExactStep = exact(self.model, functional.cross_entropy, self.first, steps=6, check=False)

    @property
    def head(self) -> nn.Module:
        return self.model.get_submodule("2")


@pytest.mark.parametrize("make", [SGD, AdamW])
def test_another_optimizer_of_the_same_loss_is_refused(make: Callable[..., Optimizer]) -> None:
    now = Parts()
    now.other = make(now.head.parameters(), 0.1)
    x, y = next(batches())
    with now.step.own_loop() as loss:
        loss(now.model(x), y).backward()
        now.first.step()
        with pytest.raises(UnsupportedError, match=GRADIENTS):
            now.other.step()
    assert all(parameter.grad is None for parameter in now.model.parameters())


def test_gradients_of_parameters_that_the_optimizer_does_not_hold_are_refused() -> None:
    now = Parts()
    x, y = next(batches())
    with now.step.own_loop() as loss:
        loss(now.model(x), y).backward()
        with pytest.raises(UnsupportedError, match=GRADIENTS):
            nn.utils.clip_grad_norm_(now.head.parameters(), 1.0)
        now.first.step()


@pytest.mark.parametrize("clears", ["optimizer", "model", "other"])
def test_parameters_that_nobody_trains_need_no_zero_grad(clears: str) -> None:
    called, looped = Parts(), Parts()
    looped.model.get_submodule("0").get_parameter("bias").requires_grad_(False)
    called.model.get_submodule("0").get_parameter("bias").requires_grad_(False)
    with looped.step.own_loop() as loss:
        for x, y in batches():
            called.step(x, y)
            (looped.model if clears == "model" else looped.first).zero_grad()
            loss(looped.model(x), y).backward()
            if clears == "other":
                looped.other.zero_grad()
            assert looped.model.get_submodule("0").get_parameter("bias").grad is None
            looped.first.step()
    one, two = called.model.state_dict(), looped.model.state_dict()
    assert all(one[name].numpy().tobytes() == two[name].numpy().tobytes() for name in one)


def test_a_real_gradient_of_another_parameter_is_not_left_out() -> None:
    now = Parts()
    x, y = next(batches())
    value: Any = functional.cross_entropy(now.model(x), y)
    value.backward()
    now.first.zero_grad()
    with pytest.raises(ProtocolError, match=r"2.weight has a gradient before backward"), now.step.own_loop() as loss:
        loss(now.model(x), y).backward()


ENCODER = nn.Linear(6, 6)
PROMPT = nn.Parameter(torch.zeros(6))
INPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "an encoder": lambda x: torch.as_tensor(ENCODER(x)),
    "a prompt": lambda x: x + PROMPT,
    "the input": lambda x: x.clone().requires_grad_(),
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_requires_a_gradient_is_refused(name: str) -> None:
    """In the call of the model, and by the step."""
    now = training()
    x, y = next(batches())
    with pytest.raises(UnsupportedError, match=f"part 0 {BATCH}"), now.step.own_loop():
        now.model(INPUTS[name](x))
    with pytest.raises(UnsupportedError, match=f"part 0 {BATCH}"):
        now.step(INPUTS[name](x), y)
    now.step(INPUTS[name](x).detach(), y)


def test_a_target_that_requires_a_gradient_is_refused() -> None:
    now = training(loss=functional.mse_loss)
    target = torch.zeros(8, 3, requires_grad=True)
    with pytest.raises(UnsupportedError, match=f"part 1 {BATCH}"), now.step.own_loop() as loss:
        loss(now.model(X[:8]), target)
    with pytest.raises(UnsupportedError, match=f"part 1 {BATCH}"):
        now.step(X[:8], target)


class LearnedLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return self.scale * functional.cross_entropy(output, target)


def closed(learned: LearnedLoss) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda output, target: torch.as_tensor(learned(output, target))


@pytest.mark.parametrize("wrap", [lambda learned: learned, closed, lambda learned: learned.forward])
def test_a_loss_that_is_trained_is_refused(wrap: Callable[[LearnedLoss], Callable[..., Tensor]]) -> None:
    """A module, a function that closes over one, a method; frozen it is none."""
    learned = LearnedLoss()
    now = training(loss=wrap(learned))
    with pytest.raises(UnsupportedError, match=r"scale requires a gradient.*requires_grad_\(False\)"):
        now.step.own_loop().__enter__()
    learned.requires_grad_(False)
    x, y = next(batches())
    with now.step.own_loop() as loss:
        now.lines(loss, x, y)
        learned.requires_grad_(True)
        with pytest.raises(ProtocolError, match="scale has changed"):
            now.lines(loss, x, y)
        learned.requires_grad_(False)
        now.lines(loss, x, y)


class Prompted(nn.Module):
    """Learns a tensor that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.prompt = nn.Linear(6, 3), torch.zeros(6, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.layer(x + self.prompt))


def test_a_trained_tensor_of_the_model_that_is_no_parameter_is_refused() -> None:
    now = training(Prompted)
    with pytest.raises(UnsupportedError, match=r"model\.prompt requires a gradient"):
        now.step.own_loop().__enter__()
