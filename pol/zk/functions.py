"""What the models of the circuits are written with: sums and products alone, so that a circuit needs no tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

SQUARINGS = 6
"""exp(z) is taken as (1 + z / 2^6)^(2^6), in training as in proofs: it is the model, no approximation of one."""


def exponential(z: Tensor) -> Tensor:
    """relu(1 + z / 64) ** 64, which is exp(z) up to a factor of about 1 - z**2 / 128; same shape."""
    power = torch.relu(1.0 + z * 2.0**-SQUARINGS)
    for _ in range(SQUARINGS):
        power = power * power
    return power


def softmax(z: Tensor) -> Tensor:
    """`exponential` over its sum along the last dimension."""
    powers = exponential(z)
    return powers / powers.sum(-1, keepdim=True)


def cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """Sum over the batch of log(sum(exponential(z))) - z[label]; z and one-hot labels of shape (batch, classes).

    Its gradient needs no logarithm: autograd only divides by the sum.
    """
    return torch.log(exponential(z).sum(-1, keepdim=True)).sum() - (z * labels).sum()


def binary_cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """Sum over the batch of log(1 + exponential(z)) - z * label; labels are 0 or 1."""
    return torch.log(1.0 + exponential(z)).sum() - (z * labels).sum()


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

    So the rate meets the few numbers near the loss, not every weight.
    """
    moves = torch.autograd.grad(loss * rate, list(parts))
    return join([part - move for part, move in zip(parts, moves, strict=True)])
