"""How far rounding alone moves the results of a step: torch's step again, with drawn rounding errors.

Monte Carlo arithmetic (Stott Parker 1997): before each operation that rounds, its operands change by a random relative
error of the size of its rounding, as if the operation were backward stable. Results that move may differ between two
honest executions, the others may not. Next to a discontinuity the noise jumps too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pol.execution.self_check.drawn_errors import DrawnErrors
from pol.execution.self_check.operation_classes import EXACT
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.aten_graph import AtenGraph, AtenNode, references

UNIT = 2.0**-22
"""Relative change of an operand, four times the rounding of binary32, since both executions have errors."""
BFLOAT_UNIT = 2.0**-8
"""The same for bfloat16, one unit: a sum close to a tie is rounded either way."""
_LONGEST = 512
"""The most terms that torch or a program adds one after another; longer folds are split."""


class NoisyExecutor(NativeExecutor):
    """Steps of an ATen graph whose operands have drawn relative errors; `terms` are the lengths of its folds."""

    def __init__(self, graph: AtenGraph, terms: Mapping[str, int], seed: int) -> None:
        super().__init__(graph)
        self._terms = terms
        self._errors = DrawnErrors(seed, torch.float32)

    def call(self, node: AtenNode, values: Mapping[int, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The results of operands with drawn relative errors."""
        if node.operation in EXACT or not any(type_.dtype in {"float32", "bfloat16"} for type_ in node.outputs):
            return super().call(node, values)
        size = UNIT * math.sqrt(min(self._terms.get(node.name, 1), _LONGEST))
        refs = references(node.all_arguments)
        moved = {
            number: tuple(self._moved(tensor, size) for tensor in values[number]) for number in {r.value for r in refs}
        }
        return super().call(node, moved)

    def _moved(self, tensor: Tensor, size: float) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        if tensor.dtype == torch.bfloat16:
            size = max(size, BFLOAT_UNIT)
        return self._errors.applied(tensor, size)
