"""Linear layers that train with matrix products of int8 (W8A8): their sums are exact in any order, on any device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 127
"""The largest number of a quantized row."""
LEAST = 2.0**-100
"""A row below it counts as zeros, so that no scale is zero."""


def quantized(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix of floats as int8 and one scale for each row: the largest number of a row becomes 127 or -127.

    Args:
        matrix: (rows, columns), float32.

    Returns:
        int8 of the same shape, and float32 scales of shape (rows, 1); their product is near the matrix.
    """
    scale = matrix.abs().amax(1, keepdim=True).clamp(min=LEAST) / LEVELS
    return (matrix / scale).round().clamp(-LEVELS, LEVELS).to(torch.int8), scale


def int8_product(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right.T` of float32 matrices, each quantized by row; int32 sums, which no order changes.

    Args:
        left: (rows, terms), float32.
        right: (columns, terms), float32; at most 2^17 terms, so that no sum leaves 32 bits.

    Returns:
        (rows, columns), float32.
    """
    rows, row_scale = quantized(left)
    columns, column_scale = quantized(right)
    return torch._int_mm(rows, columns.t()).float() * row_scale * column_scale.t()


class _Int8Product(torch.autograd.Function):
    """y = x w^T, and its gradients dx = g w, dw = g^T x, each a product of int8 matrices."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return int8_product(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients
        x, weight = ctx.saved_tensors
        return int8_product(gradient, weight.t().contiguous()), int8_product(
            gradient.t().contiguous(), x.t().contiguous()
        )


class Int8Linear(nn.Linear):
    """`nn.Linear` with the same parameters, whose forward and backward products are of int8."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # its name in nn.Linear
        """The layer's output, float32; `input` is (..., in_features), float32."""
        flat = input.reshape(-1, self.in_features)
        product: Tensor = _Int8Product.apply(flat, self.weight)  # type: ignore[no-untyped-call]  # torch has no types
        output = product.reshape(*input.shape[:-1], self.out_features)
        bias = self._parameters["bias"]
        return output if bias is None else output + bias


def with_int8_products(model: nn.Module) -> nn.Module:
    """The model with an `Int8Linear` in place of every `nn.Linear`, over the same parameters; changed in place."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                layer = Int8Linear(child.in_features, child.out_features, bias=child.bias is not None, device="meta")
                layer.weight, layer.bias = child.weight, child.bias
                layer.train(child.training)
                setattr(module, name, layer)
    return model
