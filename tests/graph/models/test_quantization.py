"""Training for quantization, and layers of experts: choices that data make, in programs that do not change."""

from collections.abc import Callable

import pytest
import torch
from own_loop import CLASSES, ROWS, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows

WIDTH = 8
ONLY_DTYPE = torch.float32
"""Torch has neither the quantized functions nor grouped products in binary64."""


class Quantized(nn.Module):
    """A linear layer whose weight is quantized; `learned` says that the scales are parameters."""

    def __init__(self, quantize: Callable[[Tensor, Tensor, Tensor], Tensor], channels: int, learned: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, CLASSES)
        self.quantize = quantize
        self.scale = nn.Parameter(torch.rand(channels) * 0.05 + 0.02)
        self.zero = nn.Parameter(torch.zeros(channels))
        if not learned:
            self.scale.requires_grad_(False)
            self.zero.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.quantize(self.layer.weight, self.scale, self.zero), self.layer.bias)


def fixed(weight: Tensor, _scale: Tensor, _zero: Tensor) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(weight, 0.03, 2, -7, 7)


def by_tensors(weight: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(weight, scale, zero.int(), -7, 7)


def by_channels(weight: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return torch.fake_quantize_per_channel_affine(weight, scale, zero.int(), 0, -7, 7)


def learned(weight: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return torch._fake_quantize_learnable_per_tensor_affine(weight, scale, zero, -7, 7, 0.1)


def learned_by_channels(weight: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return torch._fake_quantize_learnable_per_channel_affine(weight, scale, zero, 0, -7, 7, 0.1)


class Straight(torch.autograd.Function):
    """Rounding whose gradient is that of the identity."""

    @staticmethod
    def forward(_: object, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(_: object, gradient: Tensor) -> Tensor:
        return gradient


def straight(weight: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return Straight.apply(weight / scale + zero).clamp(-7, 7) * scale


QUANTIZED: dict[str, Callable[[], nn.Module]] = {
    "one scale": lambda: Quantized(fixed, 1, learned=False),
    "a scale that is a tensor": lambda: Quantized(by_tensors, 1, learned=False),
    "a scale for each channel": lambda: Quantized(by_channels, CLASSES, learned=False),
    "a learned scale": lambda: Quantized(learned, 1, learned=True),
    "learned scales": lambda: Quantized(learned_by_channels, CLASSES, learned=True),
    "straight through": lambda: Quantized(straight, 1, learned=True),
}


@pytest.mark.parametrize("name", chosen_rows.each(QUANTIZED, 3, others=pytest.mark.slow))
def test_quantized_layers_train_like_their_own_loop(name: str) -> None:
    torch.manual_seed(12)
    data = [torch.randn(ROWS, WIDTH), labels()]
    require_own_loop(QUANTIZED[name](), functional.cross_entropy, data, ONLY_DTYPE)


class Experts(nn.Module):
    """Rows are sorted by their expert, and multiplied with its matrix."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, count)
        self.up = nn.Parameter(torch.randn(count, WIDTH, 8) / 3)
        self.down = nn.Parameter(torch.randn(count, 8, 4) / 3)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x.flatten(0, 1)).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        counts = (chosen.unsqueeze(1) == torch.arange(len(self.up))).sum(0)
        ends = counts.cumsum(0).int()
        rows = functional.grouped_mm(x.flatten(0, 1)[order], self.up, offs=ends).relu()
        rows = functional.grouped_mm(rows, self.down, offs=ends)
        total = torch.zeros(len(rows), 4).index_put((order,), rows * weight[order].unsqueeze(1))
        scores: Tensor = self.out(total.reshape(*x.shape[:2], 4).mean(1))
        return scores


def test_experts_with_grouped_products_train_like_their_own_loop() -> None:
    torch.manual_seed(13)
    require_own_loop(Experts(3), functional.cross_entropy, [torch.randn(ROWS, 5, WIDTH), labels()], ONLY_DTYPE)
