"""The order in which the values of a group's processes are added (docs/spec/collectives.md, "Order")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Order = Literal["ascending", "tree"]
Operation = Literal["sum", "mean"]
ORDERS: tuple[Order, ...] = ("ascending", "tree")
OPERATIONS: tuple[Operation, ...] = ("sum", "mean")


def fold_ranks(rows: Sequence[Tensor], order: Order = "ascending") -> Tensor:
    """Sum of the rows in binary32, every addition rounded: ((r0 + r1) + r2) + ..., or pairs of pairs.

    rows: at least one float tensor, all of one shape; narrower floats are widened, which is exact. Rows of float32 are
    overwritten.
    """
    level = [row.float() for row in rows]
    if order == "ascending":
        for row in level[1:]:
            level[0] += row
    while order == "tree" and len(level) > 1:
        for left, right in zip(level[::2], level[1::2], strict=False):
            left.add_(right)
        level = level[::2]
    return level[0]


def scaled(total: Tensor, operation: Operation, ranks: int) -> Tensor:
    """The sum itself, or for a mean the sum times 1/n, in place.

    A product with 1/n rounded to binary32, as a division by a scalar is a product on some devices.
    """
    return total.mul_(1 / ranks) if operation == "mean" else total


def settled(values: Tensor, kind: torch.dtype) -> Tensor:
    """The values in a type of floats, rounded once, every NaN the canonical one: 0x7fc00000, 0x7fc0 or 0x7e00."""
    narrow = values.to(kind)
    # After the conversion: that of torch makes other NaNs, by instruction set.
    return narrow.nan_to_num_(math.nan, math.inf, -math.inf)
