"""The order in which the values of a group's processes are added (docs/spec/collectives.md, "Order")."""

from __future__ import annotations

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

    rows: at least one float tensor, all of one shape; narrower floats are widened, which is exact.
    """
    if order == "ascending":
        total = rows[0].float() + rows[1].float() if len(rows) > 1 else rows[0].float().clone()
        for row in rows[2:]:
            total += row  # widened as it is added
        return total
    level = [row.float() for row in rows]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [left + right for left, right in pairs] + level[len(level) & ~1 :]
    return level[0].clone() if len(rows) == 1 else level[0]


def scaled(total: Tensor, operation: Operation, ranks: int) -> Tensor:
    """The sum itself, or for a mean the sum times 1/n, in place.

    A product with 1/n rounded to binary32, as a division by a scalar is a product on some devices.
    """
    return total.mul_(1 / ranks) if operation == "mean" else total


def settled(values: Tensor, kind: torch.dtype) -> Tensor:
    """The values in a type of floats, rounded once, every NaN the canonical one: 0x7fc00000, 0x7fc0 or 0x7e00."""
    narrow = values.to(kind)
    # After the conversion: that of torch makes other NaNs, by instruction set.
    return narrow.masked_fill_(narrow.isnan(), float("nan"))
