"""Functions for the models of the circuits: sums and products alone, so that a circuit needs no lookup tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

SQUARINGS = 3
"""exp(z) is taken as c(z / 2^3)^(2^3), where c is the Taylor polynomial of degree three."""
_ROOT: float = 6.0 ** (-1 / 3)


def exponential(z: Tensor, squarings: int = SQUARINGS) -> Tensor:
    """exp(z) but for a factor of about 1 - z**4 / 12288, same shape; below -8 it is constant, 1.5e-4.

    With n ``squarings`` the factor is 1 - z**4 / (24 * 8**n), and the constant (below -2**n) 3**-(2**n).
    1 + t + t**2 / 2 + t**3 / 6 = v**3 + v / 2r + 1/3, where v = r (1 + t) and r**3 = 1/6: two products fewer.
    """
    v = torch.relu(z * (_ROOT * 2.0**-squarings) + _ROOT)
    power = v * (v * v + 0.5 / _ROOT) + 1 / 3
    for _ in range(squarings):
        power = power * power
    return power


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, mask: Tensor | None, squarings: int) -> Tensor:
        powers = exponential(z, squarings) if mask is None else exponential(z, squarings) * mask
        parts = powers / powers.sum(-1, keepdim=True)
        ctx.save_for_backward(parts)
        return parts

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (parts,), (gradient,) = ctx.saved_tensors, gradients
        return parts * (gradient - (gradient * parts).sum(-1, keepdim=True)), None, None


def softmax(z: Tensor, mask: Tensor | None = None, squarings: int = SQUARINGS) -> Tensor:
    """`exponential` over its sum along the last dimension, where the mask of zeros and ones isn't zero.

    Autograd takes the derivative of the exact softmax, as torch does: not that of the polynomial.
    """
    parts: Tensor = cast(Any, _Softmax).apply(z, mask, squarings)
    return parts


def greatest(z: Tensor) -> Tensor:
    """The greatest number along the last dimension, which stays with size 1: by a tree of differences and ReLUs."""
    while (count := z.shape[-1]) > 1:
        half = count // 2
        first, second = z[..., :half], z[..., half : 2 * half]
        greater = second + torch.relu(first - second)
        z = greater if count == 2 * half else torch.cat([greater, z[..., 2 * half :]], -1)
    return z


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, labels: Tensor, parts: Tensor) -> Tensor:
        ctx.save_for_backward(parts, labels)
        return -(torch.log(parts) * labels).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        parts, labels = ctx.saved_tensors
        return (parts - labels) * gradients[0], None, None


def cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """Sum over the batch of -log(softmax(z))[label]; z and one-hot labels of shape (batch, classes).

    Its gradient, softmax(z) - labels, needs no logarithm.
    """
    loss: Tensor = cast(Any, _CrossEntropy).apply(z, labels, softmax(z.detach()))
    return loss


def stable_cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """As `cross_entropy`, of logits of any size: the greatest is subtracted first, so no power is above one.

    Its softmax is within 2.5e-5 of torch's.
    """
    shown = z.detach()
    # The ReLU changes nothing: it bounds the numbers that are multiplied next.
    below = torch.relu(greatest(shown) - shown)
    loss: Tensor = cast(Any, _CrossEntropy).apply(z, labels, softmax(-below, squarings=5))
    return loss


class _BinaryCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, labels: Tensor) -> Tensor:
        power = exponential(z)
        part = power / (1.0 + power)
        ctx.save_for_backward(part, labels)
        return -(torch.log(part) * labels + torch.log(1.0 - part) * (1.0 - labels)).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        part, labels = ctx.saved_tensors
        return (part - labels) * gradients[0], None


def binary_cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """Sum over the batch of the cross-entropy of sigmoid(z) = exp(z) / (1 + exp(z)); labels are 0 or 1."""
    loss: Tensor = cast(Any, _BinaryCrossEntropy).apply(z, labels)
    return loss


def squared_error(z: Tensor, labels: Tensor) -> Tensor:
    """Half the sum of squares of z - labels."""
    residual = z - labels
    return (residual * residual).sum() * 0.5


def root_mean_square_norm(z: Tensor, gain: Tensor) -> Tensor:
    """z over the root of the mean of its squares (plus 2**-10) along the last dimension, times gain."""
    width = z.shape[-1]
    inverse: Tensor = torch.rsqrt((z * z).sum(-1, keepdim=True) + width * 2.0**-10)
    return z * inverse * math.sqrt(width) * gain


def split(theta: Tensor, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
    """The tensors of these shapes, one behind the other in a vector of shape (1, n)."""
    parts, begin = [], 0
    for shape in shapes:
        size = math.prod(shape)
        parts.append(theta[:, begin : begin + size].reshape(tuple(shape)))
        begin += size
    return parts


def join(parts: Sequence[Tensor]) -> Tensor:
    """The inverse of `split`: shape (1, n)."""
    return torch.cat([part.reshape(1, -1) for part in parts], 1)


def descend(loss: Tensor, parts: Sequence[Tensor], rate: float) -> Tensor:
    """The vector after one step of plain gradient descent; autograd differentiates the loss times the rate.

    So the rate multiplies the few numbers near the loss, not every gradient.
    """
    moves = torch.autograd.grad(loss * rate, list(parts))
    return join([part - move for part, move in zip(parts, moves, strict=True)])
