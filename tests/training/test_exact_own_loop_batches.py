"""Batches of an exact training: memory that is used again, models that write into it, arguments of a loss of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_loop_training import LABELS, X, batches, plain, training
from torch import Tensor, nn
from torch.nn import functional

from pol.errors import PolError, UnsupportedError


@pytest.mark.parametrize("name", ["a buffer of numpy", "data", "in place"])
def test_the_inputs_are_those_of_the_call(name: str) -> None:
    """A loader that fills one buffer again and again changes no step that began before."""
    called, looped = training(), training()
    with looped.step.own_loop() as loss:
        for x, y in batches():
            called.step(x, y)
            array = x.numpy().copy()
            given = torch.from_numpy(array)
            looped.optimizer.zero_grad()
            output = looped.model(given)
            if name == "in place":
                given.zero_()
            elif name == "data":
                given.data.zero_()
            else:
                array[:] = 0
            loss(output, y).backward()
            looped.optimizer.step()
    assert looped.state() == called.state()


class Changing(nn.Module):
    """Changes its input."""

    def __init__(self, change: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.layer, self.change = nn.Linear(6, 3), change

    def forward(self, x: Tensor) -> Tensor:
        self.change(x)
        return torch.as_tensor(self.layer(x))


def clamped(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target.clamp_(max=1))


CHANGES: dict[str, Callable[[Tensor], object]] = {
    "itself": lambda x: x.mul_(1.5),
    "a part": lambda x: x.__setitem__((slice(None), 0), 0.0),
    "a view": lambda x: x.T.detach().view(6, -1).add_(1),
    "a piece": lambda x: x.chunk(2)[1].zero_(),
    "its data": lambda x: x.data.zero_(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("own", [False, True], ids=["call", "loop"])
def test_a_model_that_changes_its_input_is_refused(change: str, own: bool) -> None:
    now = training(lambda: Changing(CHANGES[change]))
    x, y = next(batches())
    before = x.clone()

    def take() -> None:
        if not own:
            now.step(x, y)
            return
        with now.step.own_loop() as loss:
            now.lines(loss, x, y)

    with pytest.raises(UnsupportedError, match="writes into a tensor of the batch"):
        take()
    assert torch.equal(x, before)


def test_a_loss_that_changes_its_target_is_refused_and_a_copy_may_change() -> None:
    with pytest.raises(UnsupportedError, match="writes into a tensor of the batch"):
        training(loss=clamped).step(*next(batches()))
    training(lambda: Changing(lambda x: x.clone().mul_(2))).step(*next(batches()))
    with pytest.raises(UnsupportedError, match=r"model.0: ReLU -- .*writes into a tensor of the batch"):
        training(lambda: nn.Sequential(nn.ReLU(inplace=True), plain())).step(*next(batches()))


def test_arguments_at_their_defaults_are_none() -> None:
    called, looped = training(), training()
    with looped.step.own_loop():
        for x, y in batches():
            called.step(x, y)
            looped.optimizer.zero_grad()
            value: Any = functional.cross_entropy(
                looped.model(x),
                y,
                ignore_index=int("-100"),
                reduction="".join(["me", "an"]),
                label_smoothing=float("0"),
            )
            value.backward()
            looped.optimizer.step()
    assert looped.state() == called.state()
    called, looped = training(), training()
    with pytest.raises(PolError, match="two arguments"), looped.step.own_loop():
        functional.cross_entropy(looped.model(X[:8]), LABELS[:8], ignore_index=1)
