"""The tensors that the operands of a node may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Words


@dataclass(frozen=True)
class Sources:
    """State, constants and outputs of earlier nodes, as dense uint32 arrays of words with the tensors' shapes."""

    state: Sequence[Words]
    constants: Sequence[Words]
    nodes: Sequence[Words]
