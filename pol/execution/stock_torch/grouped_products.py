"""Products of groups of rows, also where torch's kernel refuses the sizes: it wants rows of a multiple of 16 bytes."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

_MATRICES = 3


def grouped_mm(left: Tensor, right: Tensor, offs: Tensor | None = None) -> Tensor:
    """As torch's `_grouped_mm`; rows behind the last end are zero.

    Raises:
        RuntimeError: the operands do not fit.
    """
    try:
        return torch._grouped_mm(left, right, offs)
    except RuntimeError as error:
        if "multiple of 16 bytes" not in str(error):
            raise
    if offs is None:
        return torch.bmm(left, right)
    ends = [0, *offs.tolist()]
    parts = list(pairwise(ends))
    if left.dim() == right.dim():
        return torch.stack([left[:, start:end] @ right[start:end] for start, end in parts])
    result = left.new_zeros(left.shape[-2], right.shape[-1])
    for group, (start, end) in enumerate(parts):
        if left.dim() == _MATRICES:
            result[:, start:end] = left[group] @ right[:, start:end]
        else:
            result[start:end] = left[start:end] @ right[group]
    return result


grouped_mm._schema = torch.ops.aten._grouped_mm.default._schema  # type: ignore[attr-defined]  # as operations have one
