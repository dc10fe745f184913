"""The order in which the values of a group's processes are added (docs/spec/collectives.md, "Order")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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


def scale_and_settle(total: Tensor, operation: Operation, ranks: int) -> Tensor:
    """A sum times 1/n (rounded to binary32) if it's a mean, and every NaN as 0x7fc00000. In place.

    A product, as a division by a scalar is one on some devices and none on others.
    """
    if operation == "mean":
        total *= 1 / ranks
    return total.masked_fill_(total.isnan(), float("nan"))
