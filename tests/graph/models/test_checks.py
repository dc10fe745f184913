"""Conditions that only stop a training are no part of its program; others are refused, and so are caught ones.

The assertions are what people write: PYTEST_DONT_REWRITE.
"""

from collections.abc import Callable

import pytest
import torch
from own_loop import CLASSES, ROWS, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

from pol.errors import UnsupportedError

WIDTH = 5


class Checked(nn.Module):
    """A linear layer behind a check of its inputs."""

    def __init__(self, check: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.out = nn.Linear(WIDTH, CLASSES)
        self.check = check

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.check(x))
        return scores


def raising(x: Tensor) -> Tensor:
    if torch.isnan(x).any():
        raise ValueError("not a number")
    return x


def raising_last(x: Tensor) -> Tensor:
    if not torch.isnan(x).any():
        return x * 2
    raise ValueError("not a number")


def of_an_item(x: Tensor) -> Tensor:
    if x.abs().max() > 1e6 or torch.isinf(x).any().item():
        raise ValueError(f"too large: {x.shape}")
    return x


def asserting(x: Tensor) -> Tensor:
    assert torch.isfinite(x).all()
    assert (x.abs() < 1e6).all(), "too large"
    return x


def finally_counted(x: Tensor) -> Tensor:
    try:
        return raising(x)
    finally:
        x.size(0)


def branching(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return -x


def caught(x: Tensor) -> Tensor:
    try:
        if x.sum() > 0:
            raise ValueError
    except ValueError:
        return -x
    return x


def caught_outside(x: Tensor) -> Tensor:
    try:
        return raising(x - x.sum())
    except ValueError:
        return -x


def stored_before(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x * 2
    if x.sum() > 1e6:
        raise ValueError
    return x


@pytest.mark.parametrize("check", [raising, raising_last, of_an_item, asserting, finally_counted])
def test_a_condition_that_only_raises_is_no_part_of_a_program(check: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(1)
    require_own_loop(Checked(check), functional.cross_entropy, [torch.randn(ROWS, WIDTH), labels()])


@pytest.mark.parametrize("check", [branching, caught, caught_outside, stored_before])
def test_a_condition_that_decides_more_is_refused(check: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UnsupportedError, match="depends on the values of tensors"):
        require_own_loop(Checked(check), functional.cross_entropy, [torch.randn(ROWS, WIDTH), labels()])


class Decoder(nn.Module):
    """A transformer with the causal mask that its documentation recommends."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.transformer = nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        padded = source == 0
        decoded = self.transformer(
            self.embedding(source),
            self.embedding(target),
            tgt_mask=mask,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
        )
        scores: Tensor = self.out(decoded.mean(1))
        return scores


@pytest.mark.slow
def test_a_transformer_with_a_causal_mask() -> None:
    torch.manual_seed(1)
    source, target = torch.randint(0, 9, (ROWS, 5)), torch.randint(0, 9, (ROWS, 4))
    source[:, 0] = 1
    require_own_loop(Decoder(), functional.cross_entropy, [source, target, labels()])
